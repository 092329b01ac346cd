// The models that `parley onboard` offers, and what each choice writes; pure.

import { defaultModel } from "@parley/contracts";

export const modelProviders = ["anthropic", "openai", "local", "rehearsal"] as const;

export type ModelAnswer =
  | { readonly provider: "anthropic"; readonly key: string; readonly baseUrl: string }
  | { readonly provider: "openai"; readonly key: string; readonly baseUrl: string; readonly model: string }
  | {
      readonly provider: "local";
      readonly name: string;
      readonly baseUrl: string;
      readonly model: string;
      /** Left out: the server needs none. */
      readonly key?: string;
    }
  | { readonly provider: "rehearsal" };

/** A model server on this machine. */
export interface LocalServer {
  /** The name of its table `[llm.<name>]`. */
  readonly name: string;
  readonly title: string;
  readonly baseUrl: string;
}

const onPort = (name: string, title: string, port: number): LocalServer => ({
  name,
  title,
  baseUrl: `http://127.0.0.1:${port}/v1`,
});

/** Servers with OpenAI's API at the ports that they use by default. */
export const usualServers: readonly LocalServer[] = [
  onPort("ollama", "Ollama", 11_434),
  onPort("lmstudio", "LM Studio", 1_234),
  onPort("llamacpp", "llama.cpp", 8_080),
  onPort("vllm", "vLLM", 8_000),
];

/** The server at an address that a person named. */
export function serverAt(baseUrl: string): LocalServer {
  const given = baseUrl.replace(/\/+$/, "");
  return usualServers.find((server) => server.baseUrl === given) ?? { name: "local", title: given, baseUrl: given };
}

export const suggestedOpenAiModel = "gpt-5";

type Env = Readonly<Record<string, string | undefined>>;

/** The address of a provider's API: the one in the environment, so that a proxy applies, or its own. */
export function addressOf(provider: "anthropic" | "openai", env: Env): string {
  const given = provider === "anthropic" ? env["ANTHROPIC_BASE_URL"] : env["OPENAI_BASE_URL"];
  const own = provider === "anthropic" ? "https://api.anthropic.com" : "https://api.openai.com/v1";
  return (given || own).replace(/\/+$/, "");
}

/** The variable with a provider's key. */
export function keyVariable(provider: "anthropic" | "openai"): string {
  return provider === "anthropic" ? "ANTHROPIC_API_KEY" : "OPENAI_API_KEY";
}

/** For people, such as `gpt-5 (OpenAI)`. */
export function modelTitle(answer: ModelAnswer): string {
  switch (answer.provider) {
    case "anthropic":
      return `${defaultModel} (Claude)`;
    case "openai":
      return `${answer.model} (OpenAI)`;
    case "local":
      return `${answer.model} (${serverAt(answer.baseUrl).title})`;
    default:
      return "the rehearsal model";
  }
}

/** The settings and secrets of a choice. A setting with the value null is removed. */
export function modelPlan(answer: ModelAnswer) {
  switch (answer.provider) {
    case "anthropic":
      return { tables: { agent: { model: null } }, secrets: { ANTHROPIC_API_KEY: answer.key } };
    case "openai":
      return { tables: { agent: { model: `openai:${answer.model}` } }, secrets: { OPENAI_API_KEY: answer.key } };
    case "local": {
      const { name, baseUrl, model, key } = answer;
      const variable = key === undefined ? null : `PARLEY_AGENT_${name.toUpperCase()}_KEY`;
      return {
        tables: { agent: { model: name }, [`llm.${name}`]: { base_url: baseUrl, model, key_env: variable } },
        secrets: variable === null || key === undefined ? {} : { [variable]: key },
      };
    }
    default:
      return { tables: { agent: { model: "rehearsal" } }, secrets: {} };
  }
}
