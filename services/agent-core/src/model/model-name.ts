// How a model is named: `anthropic:<model>`, `openai:<model>`, `rehearsal` or `rehearsal:<name>`; without a prefix it is Claude.
// Pure.

type ProviderName = "anthropic" | "openai" | "rehearsal";

export interface ModelName {
  provider: ProviderName;
  /** As the provider knows it; never empty. */
  model: string;
}

/** Undefined where the name names no model. A colon behind another word than a provider's is part of the name (`llama3:8b`). */
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

/** The one spelling of a model: equal names, equal models. */
export function fullName({ provider, model }: ModelName): string {
  return provider === "rehearsal" && model === "rehearsal" ? model : `${provider}:${model}`;
}
