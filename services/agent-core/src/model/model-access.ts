// Names of models with their provider's prefix, and the access to providers: keys and addresses.

type ProviderName = "anthropic" | "openai" | "rehearsal";

export interface ModelName {
  provider: ProviderName;
  /** The provider's name for it; never empty. */
  model: string;
}

/** Undefined for an invalid name. A colon after anything but a provider is part of the name (`llama3:8b`). */
function parseModelName(name: string): ModelName | undefined {
  const trimmed = name.trim();
  if (trimmed === "rehearsal") return { provider: "rehearsal", model: "rehearsal" };
  const colon = trimmed.indexOf(":");
  const provider = trimmed.slice(0, Math.max(colon, 0));
  if (provider !== "anthropic" && provider !== "openai" && provider !== "rehearsal") {
    return trimmed === "" ? undefined : { provider: "anthropic", model: trimmed };
  }
  const model = trimmed.slice(colon + 1);
  return model === "" ? undefined : { provider, model };
}

/** The canonical name: equal names mean equal models. */
export function fullName({ provider, model }: ModelName): string {
  return provider === "rehearsal" && model === "rehearsal" ? model : `${provider}:${model}`;
}

export interface ModelAccess {
  anthropic: { apiKey: string; baseUrl: string | undefined } | null;
  /** Self-hosted servers may need no key. */
  openai: { apiKey: string | undefined; baseUrl: string } | null;
}

/** The model of a name, or why it is not accessible: the text names the missing setting for the operator. */
export function findAccess(name: string, access: ModelAccess): { model: ModelName } | { problem: string } {
  const model = parseModelName(name);
  if (model === undefined) {
    return { problem: `"${name}" is not a model name; use anthropic:<model>, openai:<model> or rehearsal` };
  }
  if (model.provider === "anthropic" && access.anthropic === null) {
    return { problem: `${name} requires ANTHROPIC_API_KEY, which is not set` };
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

/** Values that must never be logged. */
export function secretsIn({ anthropic, openai }: ModelAccess): string[] {
  return [anthropic?.apiKey, openai?.apiKey].filter((key) => key !== undefined);
}
