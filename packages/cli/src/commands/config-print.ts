// `parley config print`: the settings that hold, defaults filled in, and where each came from. Secrets never stand in them.

import { ConfigError, scrub } from "@parley/chassis";

import type { Run } from "../command-line/command.ts";
import { findSettings } from "../config/find.ts";
import { readSettings } from "../config/read.ts";
import { originEntries, tomlLines } from "../config/toml.ts";
import { CliError } from "../errors.ts";
import { exitCodes } from "../exit-codes.ts";
import { note, print, printJson } from "../io.ts";

export const run: Run = async ({ values, positionals, io }) => {
  const file = findSettings(positionals[0], values, io);
  try {
    const { settings, originOf } = readSettings(file, values, io);
    const origins = values.has("origin") ? originOf : undefined;
    if (values.has("json")) {
      const shown = origins === undefined ? settings : Object.fromEntries(originEntries(settings, origins));
      printJson(io, JSON.parse(scrub(JSON.stringify(shown))));
    } else {
      note(io, file === null ? "there is no parley.toml: these are the defaults" : `from ${file}`);
      print(io, tomlLines(settings, origins).join("\n"));
    }
    return exitCodes.ok;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw new CliError(error.message);
  }
};
