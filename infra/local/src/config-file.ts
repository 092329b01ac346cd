// Where `npm start` finds parley.toml.

import { existsSync } from "node:fs";
import { join, resolve } from "node:path";

import type { Environment } from "./environment.ts";

/** PARLEY_CONFIG, else parley.toml in the home or the working folder, else null. */
export function findConfig(homePath: string, environment: Environment): string | null {
  if (environment.PARLEY_CONFIG) return resolve(environment.PARLEY_CONFIG);
  const places = [join(homePath, "parley.toml"), join(process.cwd(), "parley.toml")];
  return places.find((path) => existsSync(path)) ?? null;
}
