// `parley config print`: the settings that hold, defaults filled in. Secrets never stand in them.

import { ConfigError, loadSettings } from "@parley/chassis";

import type { Run } from "../command-line/command.ts";
import { findSettings } from "../config/find.ts";
import { tomlLines } from "../config/toml.ts";
import { CliError } from "../errors.ts";
import { exitCodes } from "../exit-codes.ts";
import { note, print, printJson } from "../io.ts";

export const run: Run = async ({ values, positionals, io }) => {
  const file = findSettings(positionals[0], values, io);
  try {
    const settings = loadSettings(file ?? undefined);
    if (values.has("json")) printJson(io, settings);
    else {
      note(io, file === null ? "there is no parley.toml: these are the defaults" : `from ${file}`);
      print(io, tomlLines(settings).join("\n"));
    }
    return exitCodes.ok;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw new CliError(error.message);
  }
};
