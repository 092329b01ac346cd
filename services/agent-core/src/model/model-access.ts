// Names of models with their provider's prefix, and the access to providers: keys and addresses.
import type { Secret } from "@parley/chassis";
import { builtInProviders, type LlmsSettings } from "@parley/contracts";

export interface ModelName {
  /** `anthropic`, `openai`, `rehearsal`, or a name under `[llm]`. */
  provider: string;
  /** The provider's name for it; never empty. */
  model: string;
}

/** Where an operator sets the key and the address of a provider, for messages. */
interface ProviderOrigin {
  /** The environment variable with the key; undefined: no key is configured. */
  keyVariable: string | undefined;
  /** The setting or variable with the address. */
  addressSetting: string;
}

/** A server in `[llm.<name>]`. */
export interface NamedServer extends ProviderOrigin {
  api: LlmsSettings[string]["api"];
  baseUrl: string;
  apiKey: Secret | undefined;
  /** The model that the name alone selects. */
  model: string | undefined;
}

export interface ModelAccess {
  anthropic: { apiKey: Secret; baseUrl: string | undefined } | null;
  /** Self-hosted servers may need no key. */
  openai: { apiKey: Secret | undefined; baseUrl: string } | null;
  /** The servers in `[llm]`, by name. */
  named: ReadonlyMap<string, NamedServer>;
}

/** Undefined for an invalid name. A colon after anything but a provider is part of the name (`llama3:8b`). */
function parseModelName(name: string, named: ModelAccess["named"]): ModelName | undefined {
  const trimmed = name.trim();
  if (trimmed === "rehearsal") return { provider: "rehearsal", model: "rehearsal" };
  const chosen = named.get(trimmed)?.model;
  if (chosen !== undefined) return { provider: trimmed, model: chosen };
  const colon = trimmed.indexOf(":");
  const provider = trimmed.slice(0, Math.max(colon, 0));
  if (!builtInProviders.some((each) => each === provider) && !named.has(provider)) {
    return trimmed === "" ? undefined : { provider: "anthropic", model: trimmed };
  }
  const model = trimmed.slice(colon + 1);
  return model === "" ? undefined : { provider, model };
}

/** The canonical name: equal names mean equal models. */
export function fullName({ provider, model }: ModelName): string {
  return provider === "rehearsal" && model === "rehearsal" ? model : `${provider}:${model}`;
}

/** The model of a name, or why it is not accessible: the text names the missing setting for the operator. */
export function findAccess(name: string, access: ModelAccess): { model: ModelName } | { problem: string } {
  const model = parseModelName(name, access.named);
  if (model === undefined) {
    const names = [...access.named.keys()].map((each) => `${each}:<model>, `).join("");
    return { problem: `"${name}" is not a model name; use anthropic:<model>, openai:<model>, ${names}or rehearsal` };
  }
  if (access.named.has(name.trim()) && model.provider === "anthropic") {
    return { problem: `[llm.${name.trim()}] has no \`model\`; use ${name.trim()}:<model>` };
  }
  if (model.provider === "anthropic" && access.anthropic === null) {
    const isClaude = /^(?:anthropic:|claude)/.test(name.trim());
    const other = isClaude ? "" : `; a model of OpenAI or of a server with its API is openai:${name.trim()}`;
    return { problem: `${name} requires ANTHROPIC_API_KEY, which is not set${other}` };
  }
  if (model.provider === "openai" && access.openai === null) {
    return {
      problem:
        `${name} requires OPENAI_API_KEY or OPENAI_BASE_URL, and neither is set. Set OPENAI_API_KEY for OpenAI, or ` +
        `OPENAI_BASE_URL for a self-hosted server (Ollama: http://127.0.0.1:11434/v1)`,
    };
  }
  return { model };
}
