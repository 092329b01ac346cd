// The commands of the terminal chat and its help, which fits on a small terminal. Pure.

import { slashCommands } from "@parley/contracts";

import type { CommandHelp } from "./completion.ts";

/** Commands of this chat, which no gateway receives. */
const localCommands: readonly CommandHelp[] = [
  { name: "/exit", usage: "/exit", summary: "leave the chat (also /quit, exit, quit, Ctrl-D, or Ctrl-C twice)" },
  { name: "/quit", usage: "/quit", summary: "leave the chat" },
  { name: "/clear", usage: "/clear", summary: "clear the screen; the conversation stays" },
  { name: "/cluster", usage: "/cluster", summary: "show the state of the cluster" },
  { name: "/sessions", usage: "/sessions", summary: "list all sessions" },
];

export const allCommands: readonly CommandHelp[] = [...slashCommands, ...localCommands].toSorted((a, b) =>
  a.name < b.name ? -1 : 1,
);

const groups: readonly (readonly [string, readonly string[]])[] = [
  ["conversation", ["/new", "/reset", "/session", "/sessions", "/status", "/compact", "/todo", "/clear"]],
  ["messages", ["/stop", "/queue", "/steer", "/later", "/now"]],
  ["approvals", ["/approve", "/deny", "/approvals", "/mode", "/rules"]],
  ["model", ["/model", "/effort", "/cost", "/skills"]],
  ["files", ["/checkpoint", "/rewind"]],
  ["people", ["/whoami", "/people", "/pair", "/link"]],
  ["other", ["/mcp", "/voice", "/cluster", "/start", "/help", "/exit"]],
];

const keys = `Enter sends; Shift-Enter, Alt-Enter or \\ before Enter starts a new line.
A paste never sends. @path attaches a file. Tab completes.
↑ and Ctrl-R: earlier messages · Ctrl-O: folded text
Esc or Ctrl-C stops the answer · Ctrl-C twice or Ctrl-D leaves`;

/** All commands by group, without their usage. */
export function helpText(): string {
  const grouped = new Set(groups.flatMap(([, names]) => names));
  const others = allCommands.map(({ name }) => name).filter((name) => !grouped.has(name) && name !== "/quit");
  const rows = groups.map(([group, names]) => {
    const all = group === "other" ? [...others, ...names] : names;
    return `${group.padEnd(13)}${all.join(" ")}`;
  });
  return `${rows.join("\n")}\n\n${keys}\n/help <command> explains one.`;
}

/** The usage of a command of this chat; null: not one of them. */
export function localUsage(name: string): string | null {
  const command = localCommands.find((each) => each.name === `/${name.replace(/^\//, "").toLowerCase()}`);
  return command === undefined ? null : `${command.usage}: ${command.summary}`;
}
