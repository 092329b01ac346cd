// Asks for a first channel: its set-up steps, the settings it cannot work without, and its secrets.

import { channelEntries, type ChannelEntry, neededSecrets, settingNamesOf } from "@parley/contracts";

import type { ChannelAnswer } from "./channel.ts";
import type { Choice, Prompts } from "./prompts.ts";

/** null: no channel now. */
export async function askChannel(prompts: Prompts): Promise<ChannelAnswer | null> {
  const entry = await prompts.choose<ChannelEntry | null>("Where do you want to write to Parley?", [
    { value: null, label: "Only here and in the browser for now", hint: "npx parley onboard adds a channel later" },
    ...channelEntries.map((each): Choice<ChannelEntry> => ({ value: each, label: each.title })),
  ]);
  if (entry === null) return null;
  prompts.box(`Setting up ${entry.title}`, entry.setUp.map((step, at) => `${at + 1}. ${plain(step)}`).join("\n"));
  const settings: Record<string, string> = {};
  for (const name of settingNamesOf(entry).required) settings[name] = await prompts.ask(`${name} of the account`);
  const secrets: Record<string, string> = {};
  for (const { setting, purpose } of neededSecrets(entry, settings)) {
    secrets[setting] = await prompts.askSecret(
      `${purpose}: ${setting} (stored in the data folder, readable only by you)`,
    );
  }
  return { channel: entry.name, account: "main", settings, secrets };
}

/** The step without Markdown. */
function plain(step: string): string {
  return step.replaceAll(/[`*]/g, "");
}
