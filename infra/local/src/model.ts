// Which model a start will use, in words. agent-core decides; this says the same rule to the person who starts.

import { readFileSync } from "node:fs";

import type { Environment } from "./environment.ts";

/** For example `rehearsal: a built-in scripted model, no key set`. */
export function describeModel(environment: Environment, configPath: string | null): string {
  const { PARLEY_MODEL, ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL, OPENAI_API_KEY, OPENAI_BASE_URL } = environment;
  const at = (model: string) => {
    const url = model.startsWith("openai:") ? OPENAI_BASE_URL : ANTHROPIC_BASE_URL;
    return model === "rehearsal" || !isSet(url) ? "" : ` at ${url}`;
  };
  if (PARLEY_MODEL === "rehearsal") return "rehearsal: a built-in scripted model, chosen by PARLEY_MODEL";
  if (isSet(PARLEY_MODEL)) return `${PARLEY_MODEL}${at(PARLEY_MODEL)}`;
  const named = modelOfConfig(configPath);
  if (named !== null) return `${named}${at(named)} (parley.toml)`;
  if (isSet(ANTHROPIC_API_KEY)) return `Claude, the default one${at("")}`;
  if (isSet(OPENAI_API_KEY) || isSet(OPENAI_BASE_URL))
    return "rehearsal: a built-in scripted model; name a real one with PARLEY_MODEL=openai:<model>";
  return "rehearsal: a built-in scripted model, no key set";
}

function isSet(value: string | undefined): value is string {
  return value !== undefined && value !== "";
}

function modelOfConfig(configPath: string | null): string | null {
  if (configPath === null) return null;
  try {
    const agent = /^\s*\[agent\]([\s\S]*?)(?=^\s*\[|(?![\s\S]))/m.exec(readFileSync(configPath, "utf8"))?.[1] ?? "";
    return /^\s*model\s*=\s*["']([^"']+)["']/m.exec(agent)?.[1] ?? null;
  } catch {
    return null; // the services say what is wrong with it
  }
}
