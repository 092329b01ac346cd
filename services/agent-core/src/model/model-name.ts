// Model names: `anthropic:<model>`, `openai:<model>`, `rehearsal` or `rehearsal:<name>`; without a prefix it is Claude.
// Pure.

type ProviderName = "anthropic" | "openai" | "rehearsal";

export interface ModelName {
  provider: ProviderName;
  /** The provider's name for it; never empty. */
  model: string;
}

/** Undefined for an invalid name. A colon after anything but a provider is part of the name (`llama3:8b`). */
export function parseModelName(name: string): ModelName | undefined {
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
