// Parses a person's text: a message for the agent, optionally with a queue mode, or a command. Pure.
import type { QueueMode } from "@parley/contracts";

/** A command as it was typed. */
export interface CommandLine {
  /** In lower case, with its slash. */
  name: string;
  /** The trimmed text after the name. */
  rest: string;
}

export type ParsedInput =
  /** For the agent; `mode` is set when the text names a queue mode (/steer, /later, /now). */
  { kind: "message"; text: string; mode?: QueueMode } | { kind: "command"; command: CommandLine };

/** `/name` or `/name@bot`, with optional arguments. A path such as `/etc/hosts` is not a command. */
const commandPattern = /^(\/[A-Za-z][A-Za-z0-9_-]*)(?:@\S+)?(?:\s+([^]*))?$/;

/** Commands whose text goes to the agent; they only set the queue mode. */
const sayingModes: Readonly<Record<string, QueueMode>> = {
  "/steer": "steer",
  "/later": "queue",
  "/now": "interrupt",
};

/** `prefix`: what else a command may begin with on this channel. */
export function parseInput(text: string, prefix?: string): ParsedInput {
  const typed = prefix !== undefined && text.startsWith(prefix) ? `/${text.slice(prefix.length)}` : text;
  const match = commandPattern.exec(typed);
  if (match === null) return { kind: "message", text };
  const name = (match[1] ?? "").toLowerCase();
  const rest = (match[2] ?? "").trim();
  const mode = sayingModes[name];
  if (mode !== undefined && rest !== "") return { kind: "message", text: rest, mode };
  return { kind: "command", command: { name, rest } };
}
