// Finds parley.toml in the same places and order as `npm start`.

import { existsSync } from "node:fs";
import { join, resolve } from "node:path";

import { homePath } from "../cluster/home.ts";
import type { OptionValues } from "../command-line/options.ts";
import type { Io } from "../io.ts";

/** The given file, PARLEY_CONFIG, or parley.toml in the data folder or the working folder, in this order; null if none exists. */
export function findSettings(given: string | undefined, values: OptionValues, io: Io): string | null {
  if (given !== undefined) return resolve(io.cwd, given);
  if (io.env["PARLEY_CONFIG"]) return resolve(io.cwd, io.env["PARLEY_CONFIG"]);
  const places = [join(homePath(values, io), "parley.toml"), join(io.cwd, "parley.toml")];
  return places.find((path) => existsSync(path)) ?? null;
}
