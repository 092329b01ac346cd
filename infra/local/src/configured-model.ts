// Which model the agent of a cluster will use, from the settings and the environment.

import { basename } from "node:path";

import type { ExplainedSettings } from "@parley/chassis/settings";
import { defaultModel } from "@parley/contracts";

import { isSet, type Environment } from "./environment.ts";

/**
 * True if the settings choose a model or Claude's key is set. An OpenAI-compatible server without a model in the settings is not enough,
 * because it has no default model.
 */
export function isModelConfigured(environment: Environment, { agent }: ExplainedSettings["settings"]): boolean {
  return agent.model !== undefined || isSet(environment["ANTHROPIC_API_KEY"]);
}

/** The model that the agent will use, for people: for example `rehearsal: a built-in scripted model, no key set`. */
export function describeModel(environment: Environment, { settings, originOf }: ExplainedSettings): string {
  const { ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL, OPENAI_API_KEY, OPENAI_BASE_URL } = environment;
  const urlSuffix = (model: string) => {
    const url = model.startsWith("openai:") ? OPENAI_BASE_URL : ANTHROPIC_BASE_URL;
    return isSet(url) ? ` at ${url}` : "";
  };
  const { model } = settings.agent;
  if (model !== undefined) {
    const origin = basename(originOf(["agent", "model"]));
    if (model === "rehearsal") return `rehearsal: a built-in scripted model, chosen by ${origin}`;
    return `${model}${urlSuffix(model)}${origin === "PARLEY_MODEL" ? "" : ` (${origin})`}`;
  }
  if (isSet(ANTHROPIC_API_KEY)) return `${defaultModel}, the default model${urlSuffix("")}`;
  if (isSet(OPENAI_API_KEY) || isSet(OPENAI_BASE_URL))
    return "rehearsal: a built-in scripted model; choose a real one with PARLEY_MODEL=openai:<model>";
  return "rehearsal: a built-in scripted model, no key set";
}
