// Computes the effective settings: flags override variables, which override parley.toml, its preset and the defaults.
// `ParleySettingsSchema` in the contracts defines the settings; docs/configuration.md documents them.
import { readFileSync } from "node:fs";
import { errorMessage, ParleySettingsSchema, type ParleySettings } from "@parley/contracts";
import { ConfigError } from "./errors.ts";
import {
  isPreset,
  layerOfPreset,
  parseLayer,
  layersOfEnvironment,
  layersOfFlags,
  type SettingsEnvironment,
} from "./settings-layers.ts";
import { mergeLayers, sourceOf, type SettingsLayer } from "./settings-merge.ts";
import { settingsProblems } from "./settings-problems.ts";

export interface ExplainedSettings {
  settings: ParleySettings;
  /** The source of the value at a path: a flag, a variable, the file, `preset <name>` or `default`. */
  originOf: (path: readonly string[]) => string;
}

/**
 * The settings of a deployment. `path`: parley.toml, undefined for none. `env`: PARLEY_PRESET, PARLEY_MODEL, `PARLEY__TABLE__KEY`
 * and the flags in PARLEY_SET; nothing else of it is read. Throws ConfigError that names each source, key and problem.
 */
export function loadSettings(path: string | undefined, env: SettingsEnvironment = {}): ParleySettings {
  return explainSettings(path, env).settings;
}

/** Like `loadSettings`, with the source of each value. */
export function explainSettings(path: string | undefined, env: SettingsEnvironment = {}): ExplainedSettings {
  const file = path === undefined ? [] : [parseLayer(readSettings(path), path)];
  return explain([...file, ...layersOfEnvironment(env), ...layersOfFlags(env)]);
}

/** The settings of a text and its preset. `path` names the text in error messages. Throws ConfigError. */
export function parseSettings(text: string, path: string): ParleySettings {
  return explain([parseLayer(text, path)]).settings;
}

function explain(given: readonly SettingsLayer[]): ExplainedSettings {
  const { preset } = mergeLayers(given);
  const layers = isPreset(preset) ? [layerOfPreset(preset), ...given] : given;
  const result = ParleySettingsSchema.safeParse(mergeLayers(layers), { reportInput: true });
  if (!result.success) throw new ConfigError(settingsProblems(layers, result.error.issues));
  return { settings: result.data, originOf: (path) => sourceOf(layers, path) ?? "default" };
}

function readSettings(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const reason = errorMessage(error);
    throw new ConfigError(`PARLEY_CONFIG: cannot read ${path}: ${reason}`);
  }
}
