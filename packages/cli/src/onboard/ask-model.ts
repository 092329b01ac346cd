// Asks for the model until one answers, or the person keeps one that does not.

import { findServers, type FoundServer, modelsAt, type ModelTest, testModel } from "./model-test.ts";
import {
  addressOf,
  keyVariable,
  type ModelAnswer,
  modelTitle,
  serverAt,
  suggestedOpenAiModel,
  usualServers,
} from "./models.ts";
import type { Choice, Prompts } from "./prompts.ts";

type Env = Readonly<Record<string, string | undefined>>;
type Provider = "anthropic" | "openai";
type Wish = Provider | "rehearsal" | "address" | { readonly server: FoundServer };

/** The model of the person's choice; it has answered a test call, or the person keeps it although it did not. */
export async function askModel(prompts: Prompts, env: Env): Promise<ModelAnswer> {
  for (;;) {
    const answer = await askOnce(prompts, env);
    if (answer !== null) return answer;
  }
}

/** null: the person wants to choose again. */
async function askOnce(prompts: Prompts, env: Env): Promise<ModelAnswer | null> {
  const search = prompts.wait("Looking for model servers on this machine");
  const servers = await findServers(usualServers);
  search.stop(
    servers.length === 0
      ? "No model server runs on this machine"
      : `Found ${servers.map(({ title }) => title).join(", ")}`,
  );
  const wish = await prompts.choose<Wish>("Which model do you want to use?", [
    { value: "anthropic", label: "Claude", hint: "needs an API key of Anthropic" },
    { value: "openai", label: "OpenAI", hint: "needs an API key of OpenAI" },
    ...servers.map((server): Choice<Wish> => ({
      value: { server },
      label: `${server.title} on this machine`,
      hint: `${server.models.length === 0 ? "no models yet" : server.models.slice(0, 3).join(", ")}, ${server.baseUrl}`,
    })),
    { value: "address", label: "Another server with OpenAI's API", hint: "asks for its address" },
    { value: "rehearsal", label: "None yet", hint: "the built-in rehearsal model: no key, understands no language" },
  ]);
  if (wish === "rehearsal") return { provider: "rehearsal" };
  if (wish === "anthropic" || wish === "openai") return askHosted(prompts, env, wish);
  const server = wish === "address" ? await askAddress(prompts) : wish.server;
  return askUntilTested(prompts, (last) => askOfServer(prompts, server, last));
}

/** The model, and the key of a server that has refused a call without one. */
async function askOfServer(
  prompts: Prompts,
  { name, baseUrl, models }: FoundServer,
  last: Attempt | undefined,
): Promise<ModelAnswer> {
  const before = last?.answer.provider === "local" ? last.answer : undefined;
  if (before === undefined || last?.test.outcome !== "key_refused") {
    return { ...before, provider: "local", name, baseUrl, model: await askModelName(prompts, models) };
  }
  return {
    ...before,
    key: await prompts.askSecret("API key of the server (stored in the data folder, readable only by you)"),
  };
}

async function askHosted(prompts: Prompts, env: Env, provider: Provider): Promise<ModelAnswer | null> {
  const baseUrl = addressOf(provider, env);
  return askUntilTested(prompts, async (last) => {
    const model = provider === "openai" ? await askOpenAiModel(prompts, last) : null;
    // A key that works is not asked for again.
    const known = last?.test.outcome === "unknown_model" && "key" in last.answer ? last.answer.key : undefined;
    const key =
      known ??
      (await prompts.askSecret(`API key (stored in the data folder, readable only by you; ${keyVariable(provider)})`));
    return provider === "openai"
      ? { provider, key, baseUrl, model: model ?? suggestedOpenAiModel }
      : { provider: "anthropic", key, baseUrl };
  });
}

interface Attempt {
  readonly answer: ModelAnswer;
  readonly test: ModelTest;
}

/** Asks again while the test call fails and the person wants to; null: they want to choose another model. */
async function askUntilTested(
  prompts: Prompts,
  ask: (last: Attempt | undefined) => Promise<ModelAnswer>,
): Promise<ModelAnswer | null> {
  let last: Attempt | undefined;
  for (;;) {
    const answer = await ask(last);
    const waiting = prompts.wait(`Asking ${modelTitle(answer)} for one word`);
    const test = await testModel(answer);
    waiting.stop(test.outcome === "works" ? `${modelTitle(answer)} answers` : test.text);
    if (test.outcome === "works") return answer;
    last = { answer, test };
    if (test.outcome !== "failed") continue;
    const next = await prompts.choose("What now?", [
      { value: "again", label: "Try again" },
      { value: "other", label: "Choose another model" },
      { value: "keep", label: "Use it all the same", hint: "messages wait and fail until it answers" },
    ]);
    if (next === "keep") return answer;
    if (next === "other") return null;
  }
}

async function askOpenAiModel(prompts: Prompts, last: Attempt | undefined): Promise<string> {
  const before = last?.test.outcome === "key_refused" && "model" in last.answer ? last.answer.model : undefined;
  return before ?? prompts.ask("Which model?", suggestedOpenAiModel);
}

async function askAddress(prompts: Prompts): Promise<FoundServer> {
  for (;;) {
    const given = await prompts.ask("Its address, such as http://192.168.1.5:8000/v1");
    if (/^https?:$/.test(URL.parse(given)?.protocol ?? "")) {
      const server = serverAt(given);
      return (await modelsAt(server)) ?? { ...server, models: [] };
    }
    prompts.warn(`"${given}" is not an address such as http://192.168.1.5:8000/v1.`);
  }
}

/** One of the listed models, or a name if none is listed. */
async function askModelName(prompts: Prompts, models: readonly string[]): Promise<string> {
  if (models.length === 0) return prompts.ask("The name of the model on that server");
  return prompts.choose(
    "Which model?",
    models.map((model) => ({ value: model, label: model })),
  );
}
