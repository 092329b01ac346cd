// What a person's text is: something for the agent, perhaps with a word on when, or a command. Pure.
import type { QueueMode } from "@parley/contracts";

/** A command as it was typed. */
export interface CommandLine {
  /** In lower case, with its slash. */
  name: string;
  /** What stands behind it, without the spaces around. */
  rest: string;
}

export type Spoken =
  /** For the agent; `mode` where the text says what is done with it while the agent is busy. */
  { kind: "message"; text: string; mode?: QueueMode } | { kind: "command"; command: CommandLine };

/** `/name`, perhaps addressed (`/name@bot`) and with arguments. A path such as `/etc/hosts` is no command. */
const commandPattern = /^(\/[A-Za-z][A-Za-z0-9_-]*)(?:@\S+)?(?:\s+([^]*))?$/;

/** Commands whose text goes to the agent: they only say when. */
const sayingModes: Readonly<Record<string, QueueMode>> = {
  "/steer": "steer",
  "/later": "queue",
  "/now": "interrupt",
};

export function readSpoken(text: string): Spoken {
  const match = commandPattern.exec(text);
  if (match === null) return { kind: "message", text };
  const name = (match[1] ?? "").toLowerCase();
  const rest = (match[2] ?? "").trim();
  const mode = sayingModes[name];
  if (mode !== undefined && rest !== "") return { kind: "message", text: rest, mode };
  return { kind: "command", command: { name, rest } };
}
