// The commands about sessions, what waits in them, what they ask, cost and have changed.

import { efforts, permissionModes } from "@parley/contracts";

import type { CommandSpec } from "../command-line/command.ts";
import { jsonOption, targetOptions, type OptionTable } from "../command-line/options.ts";

const target = { ...targetOptions, ...jsonOption } as const;
const session = {
  session: {
    type: "string",
    value: "<id>",
    about: "a session, by id or key; by default the one `parley chat` speaks in",
  },
} as const satisfies OptionTable;
const route = {
  route: { type: "string", value: "<key>", about: "what leads there from now on; by default `parley chat`" },
} as const satisfies OptionTable;

const onSessions: readonly CommandSpec[] = [
  {
    name: "sessions",
    summary: "all conversations, most recently used first",
    options: {
      ...target,
      archived: { type: "boolean", about: "those that were put aside" },
      subagents: { type: "boolean", about: "also those of sub-agents" },
      calls: { type: "boolean", about: "also those of single calls: run, --once, API calls that name no conversation" },
      text: { type: "string", value: "<part>", about: "only those with this in their title" },
    },
    examples: ["parley sessions", "parley sessions --text holiday --json"],
    load: async () => (await import("../commands/sessions.ts")).run,
  },
  {
    name: "sessions show",
    summary: "the messages of one conversation; with --json one a line",
    operands: "<id or key>",
    maxOperands: 1,
    options: target,
    examples: ["parley sessions show main", "parley sessions show main --json | tail -1"],
    load: async () => (await import("../commands/sessions-show.ts")).run,
  },
  {
    name: "sessions new",
    summary: "begin a new session; the one before is kept",
    operands: "[<title>]",
    maxOperands: 1,
    options: { ...target, ...route },
    examples: ["parley sessions new 'tax return'", "parley sessions new --route http:default:cli"],
    load: async () => (await import("../commands/sessions-change.ts")).open,
  },
  {
    name: "sessions resume",
    summary: "go on with an earlier session",
    operands: "<id, key or title>",
    maxOperands: 1,
    options: { ...target, ...route },
    examples: ["parley sessions resume 'tax return'"],
    load: async () => (await import("../commands/sessions-change.ts")).resume,
  },
  {
    name: "sessions fork",
    summary: "a copy of a session that goes its own way",
    operands: "<id or key> [<title>]",
    maxOperands: 2,
    options: {
      ...target,
      route: { type: "string", value: "<key>", about: "what leads to the copy from now on; nothing by default" },
    },
    examples: ["parley sessions fork main 'what if'"],
    load: async () => (await import("../commands/sessions-change.ts")).fork,
  },
  {
    name: "sessions rename",
    summary: "give a session a title",
    operands: "<id or key> <title>",
    maxOperands: 2,
    options: target,
    examples: ["parley sessions rename main 'everything'"],
    load: async () => (await import("../commands/sessions-change.ts")).rename,
  },
  {
    name: "sessions archive",
    summary: "put a session aside",
    operands: "<id or key>",
    maxOperands: 1,
    options: { ...target, undo: { type: "boolean", about: "take it back" } },
    examples: ["parley sessions archive http:default:run-1a2b3c4d"],
    load: async () => (await import("../commands/sessions-change.ts")).archive,
  },
];

export const controlCommands: readonly CommandSpec[] = [
  ...onSessions,
  {
    name: "queue",
    summary: "what waits behind the running turn; take it back, change it",
    operands: "[<id or key>] | --edit <id> <text>",
    maxOperands: 1,
    options: {
      ...target,
      cancel: { type: "string", value: "<id>", about: "take this one back" },
      edit: { type: "string", value: "<id>", about: "give this one another text" },
    },
    examples: ["parley queue", "parley queue --cancel 0198c0de-…", "parley queue --edit 0198c0de-… 'the other file'"],
    load: async () => (await import("../commands/queue.ts")).run,
  },
  {
    name: "approvals",
    summary: "tool calls that wait for a yes; the answer",
    options: {
      ...target,
      session: { type: "string", value: "<id>", about: "of this session alone" },
      all: { type: "boolean", about: "also those that are answered" },
      approve: { type: "string", value: "<id>", about: "yes, once" },
      always: { type: "boolean", about: "with --approve: also to calls like it in this session" },
      deny: { type: "string", value: "<id>", about: "no" },
    },
    examples: ["parley approvals", "parley approvals --approve AB12", "parley approvals --deny AB12"],
    load: async () => (await import("../commands/approvals.ts")).run,
  },
  {
    name: "cost",
    summary: "what models were used, and what it cost",
    details: "A call whose price is not known is counted apart and never as nothing.",
    options: {
      ...target,
      session: { type: "string", value: "<id>", about: "of this session alone" },
      days: { type: "string", value: "<n>", about: "so many days (UTC), today included; 7 by default" },
    },
    examples: ["parley cost", "parley cost --days 30 --json | jq .total"],
    load: async () => (await import("../commands/cost.ts")).run,
  },
  {
    name: "model",
    summary: "which model answers in a session, and how",
    operands: "[<model>|default]",
    maxOperands: 1,
    details: "What is set holds for the session alone, from its next model call on; default takes it back.",
    options: {
      ...target,
      ...session,
      effort: { type: "string", value: "<effort>", about: "how hard it thinks", choices: [...efforts, "default"] },
      "permission-mode": {
        type: "string",
        value: "<mode>",
        about: "what runs unasked",
        choices: [...permissionModes, "default"],
      },
    },
    examples: ["parley model", "parley model claude-opus-4-5 --effort high", "parley model default"],
    load: async () => (await import("../commands/model.ts")).run,
  },
  {
    name: "compact",
    summary: "make a session shorter for the model: a summary stands for what was said",
    operands: "[<id or key>]",
    maxOperands: 1,
    options: { ...target, keep: { type: "string", value: "<what>", about: "what the summary must not leave out" } },
    examples: ["parley compact", "parley compact main --keep 'all file names'"],
    load: async () => (await import("../commands/compact.ts")).run,
  },
  {
    name: "checkpoints",
    summary: "how files were before turns changed them",
    operands: "[<id or key>]",
    maxOperands: 1,
    options: target,
    examples: ["parley checkpoints"],
    load: async () => (await import("../commands/checkpoints.ts")).run,
  },
  {
    name: "rewind",
    summary: "put files back to how they were at a checkpoint",
    operands: "<id or number>",
    maxOperands: 1,
    options: { ...target, ...session, "dry-run": { type: "boolean", about: "only say what would happen" } },
    examples: ["parley rewind 1 --dry-run", "parley rewind 0198c0de-…"],
    load: async () => (await import("../commands/rewind.ts")).run,
  },
];
