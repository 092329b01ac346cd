// Describes the model that a start will use. agent-core decides; this file repeats its rule for the start message.

import { basename } from "node:path";

import type { ExplainedSettings } from "@parley/chassis";

import type { Environment } from "./environment.ts";

/** For example `rehearsal: a built-in scripted model, no key set`. */
export function describeModel(environment: Environment, { settings, originOf }: ExplainedSettings): string {
  const { ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL, OPENAI_API_KEY, OPENAI_BASE_URL } = environment;
  const at = (model: string) => {
    const url = model.startsWith("openai:") ? OPENAI_BASE_URL : ANTHROPIC_BASE_URL;
    return isSet(url) ? ` at ${url}` : "";
  };
  const { model } = settings.agent;
  if (model !== undefined) {
    const origin = basename(originOf(["agent", "model"]));
    if (model === "rehearsal") return `rehearsal: a built-in scripted model, chosen by ${origin}`;
    return `${model}${at(model)}${origin === "PARLEY_MODEL" ? "" : ` (${origin})`}`;
  }
  if (isSet(ANTHROPIC_API_KEY)) return `Claude, the default model${at("")}`;
  if (isSet(OPENAI_API_KEY) || isSet(OPENAI_BASE_URL))
    return "rehearsal: a built-in scripted model; choose a real one with PARLEY_MODEL=openai:<model>";
  return "rehearsal: a built-in scripted model, no key set";
}

function isSet(value: string | undefined): value is string {
  return value !== undefined && value !== "";
}
