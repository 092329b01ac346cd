// `parley config print`: prints the effective settings with defaults and the source of each value. Settings never contain secrets.

import { ConfigError, scrub } from "@parley/chassis";

import { homePath, viewHome } from "../cluster/home.ts";
import type { Run } from "../command-line/command.ts";
import type { OptionValues } from "../command-line/options.ts";
import { findSettings } from "../config/find.ts";
import { readSettings } from "../config/read.ts";
import { originEntries, tomlLines } from "../config/toml.ts";
import { CliError } from "../errors.ts";
import { exitCodes } from "../exit-codes.ts";
import { note, print, printJson, type Io } from "../io.ts";

/** The flags and variables of the running cluster; empty when the caller names other settings. */
function startedWith(file: string | undefined, values: OptionValues, io: Io): Readonly<Record<string, string>> {
  if (file !== undefined || values.has("preset") || values.has("set")) return {};
  return viewHome(homePath(values, io)).state?.settings ?? {};
}

export const run: Run = async ({ values, positionals, io }) => {
  const file = findSettings(positionals[0], values, io);
  const running = startedWith(positionals[0], values, io);
  try {
    const { settings, originOf } = readSettings(file, values, io, running);
    const origins = values.has("origin") ? originOf : undefined;
    if (values.has("json")) {
      const shown = origins === undefined ? settings : Object.fromEntries(originEntries(settings, origins));
      printJson(io, JSON.parse(scrub(JSON.stringify(shown))));
    } else {
      note(io, file === null ? "there is no parley.toml" : `from ${file}`);
      if (Object.keys(running).length > 0) note(io, "with the flags and variables of the running cluster");
      print(io, tomlLines(settings, origins).join("\n"));
    }
    return exitCodes.ok;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw new CliError(error.message);
  }
};
