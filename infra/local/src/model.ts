// Which model a start will use, in words. agent-core decides; this says the same rule to the person who starts.

import { readFileSync } from "node:fs";

import type { Environment } from "./environment.ts";

/** For example `rehearsal: a built-in scripted model, no key set`. */
export function describeModel(environment: Environment, configPath: string | null): string {
  const { PARLEY_MODEL, ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL } = environment;
  const at = ANTHROPIC_BASE_URL === undefined || ANTHROPIC_BASE_URL === "" ? "" : ` at ${ANTHROPIC_BASE_URL}`;
  if (PARLEY_MODEL === "rehearsal") return "rehearsal: a built-in scripted model, chosen by PARLEY_MODEL";
  if (PARLEY_MODEL !== undefined && PARLEY_MODEL !== "") return `${PARLEY_MODEL}${at}`;
  const named = modelOfConfig(configPath);
  if (named !== null) return `${named}${named === "rehearsal" ? "" : at} (parley.toml)`;
  if (ANTHROPIC_API_KEY !== undefined && ANTHROPIC_API_KEY !== "") return `Claude, the default one${at}`;
  return "rehearsal: a built-in scripted model, no key set";
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
