// Asks for a first channel: its set-up steps, the settings it cannot work without, and its secrets.

import { channelEntries, type ChannelEntry, neededSecrets, openQuestions, withDefaults } from "@parley/contracts";

import type { ChannelAnswer } from "./channel.ts";
import type { Choice, Prompts } from "./prompts.ts";

/** null: no channel now. */
export async function askChannel(prompts: Prompts): Promise<ChannelAnswer | null> {
  const entry = await prompts.choose<ChannelEntry | null>("Where do you want to write to Parley?", [
    { value: null, label: "Only here and in the browser for now", hint: "npx parley onboard adds a channel later" },
    ...channelEntries.map((each): Choice<ChannelEntry> => ({ value: each, label: each.title })),
  ]);
  if (entry === null) return null;
  prompts.box(`Setting up ${entry.title}`, setUpSteps(entry).join("\n"));
  const settings: Record<string, string> = {};
  for (const { setting, purpose } of openQuestions(entry, settings)) {
    settings[setting] = await prompts.ask(questionText(setting, purpose));
  }
  const secrets: Record<string, string> = {};
  for (const { setting, purpose } of neededSecrets(entry, settings)) {
    secrets[setting] = await prompts.askSecret(questionText(setting, purpose, "; stored so that only you can read it"));
  }
  return { channel: entry.name, account: "main", settings, secrets };
}

/** The steps of an account with these settings, and the defaults, in plain text: without the steps of another `mode`. */
export function setUpSteps(entry: ChannelEntry, settings: object = {}): string[] {
  const { mode } = withDefaults(entry, settings);
  return entry.setUp
    .filter((step) => (/^For `mode = "(\w+)"`/.exec(step)?.[1] ?? mode) === mode)
    .map((step, at) => `${at + 1}. ${plain(step)}`);
}

/** Names the setting too: the steps do. */
export function questionText(setting: string, purpose: string, remark = ""): string {
  return `${purpose.charAt(0).toUpperCase()}${purpose.slice(1)} (${setting}${remark})`;
}

/** The step without Markdown. Links to pages are relative to docs/. */
function plain(step: string): string {
  const link = (_: string, text: string, target: string) =>
    `${text} (${/^\w+:/.test(target) ? target : `docs/${target}`})`;
  return step.replaceAll(/\[([^\]]+)\]\(([^)]+)\)/g, link).replaceAll(/[`*]/g, "");
}
