// `parley config check`: reports all mistakes in parley.toml, variables and flags.

import { dirname, join } from "node:path";

import { ConfigError, outsideProgramProblems } from "@parley/chassis";
import { ineffectiveVoiceSettings, unmatchedHooks } from "@parley/contracts";

import { homePath } from "../cluster/home.ts";
import type { Run } from "../command-line/command.ts";
import { findSettings } from "../config/find.ts";
import { readSettings } from "../config/read.ts";
import { missingSecrets } from "../config/secrets.ts";
import { exitCodes } from "../exit-codes.ts";
import { note, painter, print, printJson } from "../io.ts";

export const run: Run = async ({ values, positionals, io }) => {
  const file = findSettings(positionals[0], values, io);
  const paint = painter(io.stdout, io.env);
  try {
    const { settings, originOf } = readSettings(file, values, io);
    const missing = missingSecrets(settings, io.env);
    const problems = outsideProgramProblems(settings, {
      workspace: io.env["PARLEY_WORKSPACE"] ?? join(homePath(values, io), "workspace"),
      configFolder: file === null ? null : dirname(file),
    });
    if (problems.length > 0) {
      throw new ConfigError(
        [`${file ?? "settings"}:`, ...problems.map((each) => `  ${each.setting}: ${each.problem}`)].join("\n"),
      );
    }
    const warnings = [...unmatchedHooks(settings.hooks), ...ineffectiveVoiceSettings(settings.voice)];
    if (values.has("json")) printJson(io, { file, ok: true, errors: [], warnings, missingSecrets: missing });
    else {
      if (file === null) print(io, "There is no parley.toml: the defaults apply.");
      else print(io, `${paint("green", "ok")}  ${file}`);
      if (settings.preset !== undefined)
        print(io, `${paint("green", "ok")}  preset ${settings.preset}, from ${originOf(["preset"])}`);
    }
    if (!values.has("json")) {
      for (const warning of warnings) note(io, warning);
      for (const { name, wantedBy } of missing)
        note(io, `${name} is not set here; ${wantedBy} needs it when Parley starts`);
    }
    return exitCodes.ok;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    if (values.has("json")) {
      const errors = error.message.split("\n").map((line) => line.trim());
      printJson(io, {
        file,
        ok: false,
        errors: errors.length > 1 ? errors.slice(1) : errors,
        warnings: [],
        missingSecrets: [],
      });
    } else note(io, `${painter(io.stderr, io.env)("red", "wrong")}  ${error.message}`);
    return exitCodes.error;
  }
};
