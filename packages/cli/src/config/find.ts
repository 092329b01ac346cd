// Which parley.toml holds: the same places, in the same order, as `npm start` looks at.

import { existsSync } from "node:fs";
import { join, resolve } from "node:path";

import { homePath } from "../cluster/home.ts";
import type { OptionValues } from "../command-line/options.ts";
import type { Io } from "../io.ts";

/** The file given, else PARLEY_CONFIG, else parley.toml in the data folder, else here; null when there is none. */
export function findSettings(given: string | undefined, values: OptionValues, io: Io): string | null {
  if (given !== undefined) return resolve(io.cwd, given);
  if (io.env["PARLEY_CONFIG"]) return resolve(io.cwd, io.env["PARLEY_CONFIG"]);
  const places = [join(homePath(values, io), "parley.toml"), join(io.cwd, "parley.toml")];
  return places.find((path) => existsSync(path)) ?? null;
}
