// The commands `parley config …`. Settings should not contain secrets; printed values are redacted in case they do.

import { dirname, join } from "node:path";

import { ConfigError, missingHookPrograms, redactSecrets, unsandboxedProgramProblems } from "@parley/chassis/settings";
import { ineffectiveVoiceSettings, unmatchedHooks } from "@parley/contracts";
import { withSecrets } from "@parley/local";

import { findSettings, missingSecrets, originEntries, readSettings, tomlLines } from "../cluster/settings.ts";
import { homePath, viewHome } from "../cluster/target.ts";
import { CliError, exitCodes, note, painter, print, printJson } from "../io/io.ts";
import { flag, homeOption, jsonOption, text, type OptionTable } from "../io/options.ts";
import type { Call, CommandSpec } from "./command.ts";

/** Options that change how `parley.toml` is evaluated. */
const settingsOptions: OptionTable = {
  ...homeOption,
  ...jsonOption,
  preset: text("<name>", "a set of settings to start from (PARLEY_PRESET)"),
  set: text("<key>=<value>", "override a setting, such as limits.max_usd=2; repeatable"),
};

/** Reports all mistakes of the first step that fails: reading parley.toml, variables and flags, then checking the programs that they name. */
async function check({ values, positionals, io }: Call): Promise<number> {
  const file = findSettings(positionals[0], values, io);
  const json = values.has("json");
  try {
    const { settings, originOf } = readSettings(file, values, io);
    const missing = missingSecrets(settings, withSecrets(homePath(values, io), io.env));
    const problems = unsandboxedProgramProblems(settings, {
      workspace: io.env["PARLEY_WORKSPACE"] ?? join(homePath(values, io), "workspace"),
      configFolder: file === null ? null : dirname(file),
    });
    if (problems.length > 0) {
      const lines = problems.map(({ setting, problem }) => `  ${setting}: ${problem}`);
      throw new ConfigError([`${file ?? "settings"}:`, ...lines].join("\n"));
    }
    const warnings = [
      ...unmatchedHooks(settings.hooks),
      ...missingHookPrograms(settings.hooks, file === null ? null : dirname(file)),
      ...ineffectiveVoiceSettings(settings.voice),
    ];
    if (json) {
      printJson(io, { file, ok: true, errors: [], warnings, missingSecrets: missing });
      return exitCodes.ok;
    }
    const good = painter(io.stdout, io.env)("green", "ok");
    print(io, file === null ? "There is no parley.toml: the defaults apply." : `${good}  ${file}`);
    if (settings.preset !== undefined) print(io, `${good}  preset ${settings.preset}, from ${originOf(["preset"])}`);
    for (const warning of warnings) note(io, warning);
    for (const { name, wantedBy } of missing)
      note(io, `${name} is not set here; ${wantedBy} needs it when Parley starts`);
    return exitCodes.ok;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    if (json) printJson(io, { file, ok: false, errors: mistakesIn(error), warnings: [], missingSecrets: [] });
    else note(io, `${painter(io.stderr, io.env)("red", "wrong")}  ${error.message}`);
    return exitCodes.error;
  }
}

/** The mistakes of a message that lists them, indented, below their sources; any other message is one mistake. */
function mistakesIn({ message }: ConfigError): string[] {
  const [first = "", ...lines] = message.split("\n");
  if (!first.endsWith(":")) return [message.trim()];
  return lines.filter((line) => line.startsWith("  ")).map((line) => line.trim());
}

/** Prints the settings with defaults and the source of each value; those of the running cluster unless the caller names others. */
async function printSettings({ values, positionals, io }: Call): Promise<number> {
  const file = findSettings(positionals[0], values, io);
  const namesOthers = positionals.length > 0 || values.has("preset") || values.has("set");
  const running = namesOthers ? {} : (viewHome(homePath(values, io)).state?.settings ?? {});
  try {
    const { settings, originOf } = readSettings(file, values, io, running);
    const origins = values.has("origin") ? originOf : undefined;
    if (values.has("json")) {
      const shown = origins === undefined ? settings : Object.fromEntries(originEntries(settings, origins));
      printJson(io, JSON.parse(redactSecrets(JSON.stringify(shown))));
    } else {
      note(io, file === null ? "There is no parley.toml." : `from ${file}`);
      if (Object.keys(running).length > 0) note(io, "with the flags and variables of the running cluster");
      print(io, tomlLines(settings, origins).join("\n"));
    }
    return exitCodes.ok;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw new CliError(error.message);
  }
}

export const configCommands: readonly CommandSpec[] = [
  {
    name: "config check",
    summary: "check parley.toml and list its mistakes",
    operands: ["[<file>]"],
    options: settingsOptions,
    examples: ["parley config check", "parley config check ./parley.toml"],
    run: check,
  },
  {
    name: "config print",
    summary: "print the effective settings, including defaults",
    operands: ["[<file>]"],
    details: "Precedence: flags, PARLEY__TABLE__KEY variables, parley.toml, its preset, defaults.",
    options: { ...settingsOptions, origin: flag("show the source of each value") },
    examples: ["parley config print --origin", "parley config print --json | jq .agent"],
    run: printSettings,
  },
];
