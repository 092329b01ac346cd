// What the answers write: settings in parley.toml and secrets in the data folder.

import { keepSecrets } from "@parley/local";

import { changeSettings, type SettingsChange } from "../cluster/settings-file.ts";
import { type ChannelAnswer, channelPlan } from "./channel.ts";
import { type ModelAnswer, modelPlan } from "./models.ts";
import type { PresetName } from "./presets.ts";

export interface Answers {
  /** null: as it is. */
  readonly model: ModelAnswer | null;
  /** null: no preset; undefined: as it is. */
  readonly preset: PresetName | null | undefined;
  readonly channel: ChannelAnswer | null;
}

export interface Plan {
  readonly change: SettingsChange;
  readonly secrets: Readonly<Record<string, string>>;
}

/** The changes of all answers; pure. */
export function planOf({ model, preset, channel }: Answers): Plan {
  const nothing = { tables: {}, secrets: {} };
  const ofModel = model === null ? nothing : modelPlan(model);
  const ofChannel = channel === null ? nothing : channelPlan(channel);
  return {
    change: {
      ...(preset === undefined ? {} : { "": { preset } }),
      ...ofModel.tables,
      ...ofChannel.tables,
    },
    secrets: { ...ofModel.secrets, ...ofChannel.secrets },
  };
}

/** Writes the secrets first: settings never name a secret that was not stored. */
export function carryOut({ change, secrets }: Plan, homePath: string, settingsFile: string): void {
  if (Object.keys(secrets).length > 0) keepSecrets(homePath, secrets);
  changeSettings(settingsFile, change);
}
