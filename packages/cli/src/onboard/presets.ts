// The presets in plain words.

import type { presetNames } from "@parley/contracts";

export type PresetName = (typeof presetNames)[number];

export interface PresetChoice {
  /** null: no preset, the defaults. */
  readonly preset: PresetName | null;
  readonly title: string;
  readonly hint: string;
}

export const presetChoices: readonly PresetChoice[] = [
  {
    preset: null,
    title: "Personal assistant",
    hint: "one thread for you in all channels, other people apart; risky calls ask you",
  },
  {
    preset: "goat",
    title: "Careful worker",
    hint: "calls one after another, most of them ask you, a spending limit for each turn",
  },
  {
    preset: "repl",
    title: "Work sessions",
    hint: "sessions with names that you resume, fork and rewind; calls do not ask",
  },
  {
    preset: "delegate",
    title: "Manager of specialists",
    hint: "a session for each conversation, work goes to sub-agents; calls do not ask",
  },
  {
    preset: "nanobot",
    title: "Small and many chats",
    hint: "a session for each conversation, one message at a time, long work in the background",
  },
  {
    preset: "singleton",
    title: "One thread for everybody",
    hint: "you, groups, other people and webhooks share one conversation; calls do not ask",
  },
  {
    preset: "steered",
    title: "One thread that input joins",
    hint: "one conversation for everybody; messages join the running turn; only the tool message sends text",
  },
];
