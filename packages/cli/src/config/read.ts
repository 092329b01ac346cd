// The settings as `parley config` and what is started see them: the file, the variables here, and the flags given.

import { explainSettings, flagsAsVariable, type ExplainedSettings } from "@parley/chassis";

import type { OptionValues } from "../command-line/options.ts";
import type { Io } from "../io.ts";

/** `file`: as `findSettings` says. `running`: what the cluster here was started with; variables here win. Throws ConfigError. */
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
