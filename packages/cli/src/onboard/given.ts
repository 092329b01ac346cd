// The answers of `parley onboard` as flags, for scripts.

import { readFileSync } from "node:fs";
import { resolve } from "node:path";

import {
  channelEntries,
  channelNamed,
  errorMessage,
  neededSecrets,
  openQuestions,
  type ChannelEntry,
} from "@parley/contracts";

import { CliError, UsageError, type Io } from "../io/io.ts";
import type { OptionValues } from "../io/options.ts";
import type { ChannelAnswer } from "./channel.ts";
import { modelsAt } from "./model-test.ts";
import { addressOf, keyVariable, type ModelAnswer, modelProviders, serverAt, suggestedOpenAiModel } from "./models.ts";
import { presetChoices } from "./presets.ts";
import type { Answers } from "./plan.ts";

/** The content of a file with a secret, without white space around it. Throws CliError. */
function secretIn(file: string, io: Io): string {
  let content: string;
  try {
    content = readFileSync(resolve(io.cwd, file), "utf8").trim();
  } catch (error) {
    throw new CliError(`Cannot read the secret: ${errorMessage(error)}`);
  }
  if (content === "") throw new CliError(`${file} is empty; it must contain the secret.`);
  return content;
}

/** Answers from the flags. Throws UsageError that names a missing or wrong flag. */
export async function givenAnswers(values: OptionValues, io: Io): Promise<Answers & { model: ModelAnswer }> {
  return { model: await givenModel(values, io), preset: givenPreset(values), channel: givenChannel(values, io) };
}

async function givenModel(values: OptionValues, io: Io): Promise<ModelAnswer> {
  const provider = modelProviders.find((each) => each === values.text("model-provider"));
  if (provider === undefined)
    throw new UsageError(`Choose a provider with --model-provider: ${modelProviders.join(", ")}.`);
  if (provider === "rehearsal") return { provider };
  const file = values.text("api-key-file");
  if (provider === "local") {
    return { ...(await localModel(values)), ...(file === undefined ? {} : { key: secretIn(file, io) }) };
  }
  const baseUrl = addressOf(provider, io.env);
  const key = file === undefined ? io.env[keyVariable(provider)] : secretIn(file, io);
  if (!key) throw new UsageError(`Name a file with the key: --api-key-file <file>, or set ${keyVariable(provider)}.`);
  if (provider === "anthropic") return { provider, key, baseUrl };
  return { provider, key, baseUrl, model: values.text("model") ?? suggestedOpenAiModel };
}

async function localModel(values: OptionValues): Promise<Extract<ModelAnswer, { provider: "local" }>> {
  const url = values.text("model-url");
  if (url === undefined) throw new UsageError("Name the server: --model-url http://127.0.0.1:11434/v1");
  const server = serverAt(url);
  const model = values.text("model") ?? (await modelsAt(server))?.models[0];
  if (model === undefined) {
    throw new CliError(`${server.baseUrl} lists no models.`, {
      fix: "Start the server, or name a model with --model.",
    });
  }
  return { provider: "local", name: server.name, baseUrl: server.baseUrl, model };
}

function givenPreset(values: OptionValues): Answers["preset"] {
  const given = values.text("preset");
  if (given === undefined) return undefined;
  return presetChoices.find(({ preset }) => (preset ?? "default") === given)?.preset ?? null;
}

function givenChannel(values: OptionValues, io: Io): ChannelAnswer | null {
  const given = values.text("channel");
  if (given === undefined) return null;
  const [channel = "", account = "main"] = given.split(":");
  const entry = channelNamed(channel);
  if (entry === undefined) {
    throw new UsageError(
      `There is no channel "${channel}". Channels: ${channelEntries.map(({ name }) => name).join(", ")}.`,
    );
  }
  const settings = pairs(values.texts("channel-set"), "--channel-set <setting>=<value>");
  const files = pairs(values.texts("channel-secret-file"), "--channel-secret-file <setting>=<file>");
  const missing = missingFlags(entry, settings, files);
  if (missing.length > 0) throw new UsageError(`${entry.title} also needs ${missing.join(" and ")}.`);
  const secrets = Object.entries(files).map(([setting, file]): [string, string] => [setting, secretIn(file, io)]);
  return { channel, account, settings, secrets: Object.fromEntries(secrets) };
}

/** The flags that an account still needs; pure. */
export function missingFlags(entry: ChannelEntry, settings: object, files: object): string[] {
  return [
    ...openQuestions(entry, settings).map(({ setting, purpose }) => `--channel-set ${setting}=<value> (${purpose})`),
    ...neededSecrets(entry, settings)
      .filter(({ setting }) => !(setting in files))
      .map(({ setting, purpose }) => `--channel-secret-file ${setting}=<file> (${purpose})`),
  ];
}

function pairs(given: readonly string[], form: string): Record<string, string> {
  return Object.fromEntries(
    given.map((pair) => {
      const at = pair.indexOf("=");
      if (at <= 0) throw new UsageError(`"${pair}" does not have the form ${form}.`);
      return [pair.slice(0, at), pair.slice(at + 1)];
    }),
  );
}
