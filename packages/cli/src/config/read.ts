// Reads the settings from the file, the environment and the flags, as the services do.

import { explainSettings, flagsAsVariable, type ExplainedSettings } from "@parley/chassis";

import type { OptionValues } from "../command-line/options.ts";
import type { Io } from "../io.ts";

/** `file`: from `findSettings`. `running`: flags and variables of the running cluster; the environment overrides them. Throws ConfigError. */
export function readSettings(
  file: string | null,
  values: OptionValues,
  io: Io,
  running: Readonly<Record<string, string>> = {},
): ExplainedSettings {
  const preset = values.text("preset");
  const flags = [...(preset === undefined ? [] : [`preset=${preset}`]), ...values.texts("set")];
  return explainSettings(file ?? undefined, { ...running, ...io.env, ...flagsAsVariable(flags) });
}
