// The commands for sessions, queues, approvals, cost and checkpoints.

import { efforts, permissionModes } from "@parley/contracts";

import type { CommandSpec } from "../command-line/command.ts";
import { jsonOption, targetOptions, type OptionTable } from "../command-line/options.ts";

const target = { ...targetOptions, ...jsonOption } as const;
const session = {
  session: {
    type: "string",
    value: "<id>",
    about: "a session, by id or key; default: that of `parley chat`",
  },
} as const satisfies OptionTable;
const route = {
  route: {
    type: "string",
    value: "<key>",
    about: "the route that leads to it from now on; default: that of `parley chat`",
  },
} as const satisfies OptionTable;

const onSessions: readonly CommandSpec[] = [
  {
    name: "sessions",
    summary: "list all sessions, most recently used first",
    options: {
      ...target,
      archived: { type: "boolean", about: "archived sessions instead" },
      subagents: { type: "boolean", about: "include sessions of sub-agents" },
      calls: {
        type: "boolean",
        about: "include sessions of single calls: run, --once, API calls without a conversation",
      },
      text: { type: "string", value: "<part>", about: "only sessions with this text in their title" },
    },
    examples: ["parley sessions", "parley sessions --text holiday --json"],
    load: async () => (await import("../commands/sessions.ts")).run,
  },
  {
    name: "sessions show",
    summary: "print the messages of one session; with --json, one per line",
    operands: "<id or key>",
    maxOperands: 1,
    options: target,
    examples: ["parley sessions show main", "parley sessions show main --json | tail -1"],
    load: async () => (await import("../commands/sessions-show.ts")).run,
  },
  {
    name: "sessions new",
    summary: "start a new session; the previous one is kept",
    operands: "[<title>]",
    maxOperands: 1,
    options: { ...target, ...route },
    examples: ["parley sessions new 'tax return'", "parley sessions new --route http:default:cli"],
    load: async () => (await import("../commands/sessions-change.ts")).open,
  },
  {
    name: "sessions resume",
    summary: "resume an earlier session",
    operands: "<id, key or title>",
    maxOperands: 1,
    options: { ...target, ...route },
    examples: ["parley sessions resume 'tax return'"],
    load: async () => (await import("../commands/sessions-change.ts")).resume,
  },
  {
    name: "sessions fork",
    summary: "copy a session and continue the copy separately",
    operands: "<id or key> [<title>]",
    maxOperands: 2,
    options: {
      ...target,
      route: { type: "string", value: "<key>", about: "the route that leads to the copy from now on; default: none" },
    },
    examples: ["parley sessions fork main 'what if'"],
    load: async () => (await import("../commands/sessions-change.ts")).fork,
  },
  {
    name: "sessions rename",
    summary: "set the title of a session",
    operands: "<id or key> <title>",
    maxOperands: 2,
    options: target,
    examples: ["parley sessions rename main 'everything'"],
    load: async () => (await import("../commands/sessions-change.ts")).rename,
  },
  {
    name: "sessions archive",
    summary: "archive a session",
    operands: "<id or key>",
    maxOperands: 1,
    options: { ...target, undo: { type: "boolean", about: "make it active again" } },
    examples: ["parley sessions archive http:default:run-1a2b3c4d"],
    load: async () => (await import("../commands/sessions-change.ts")).archive,
  },
];

export const controlCommands: readonly CommandSpec[] = [
  ...onSessions,
  {
    name: "queue",
    summary: "list, cancel or edit queued messages",
    operands: "[<id or key>] | --edit <id> <text>",
    maxOperands: 1,
    options: {
      ...target,
      cancel: { type: "string", value: "<id>", about: "cancel this message" },
      edit: { type: "string", value: "<id>", about: "replace the text of this message" },
    },
    examples: ["parley queue", "parley queue --cancel 0198c0de-…", "parley queue --edit 0198c0de-… 'the other file'"],
    load: async () => (await import("../commands/queue.ts")).run,
  },
  {
    name: "approvals",
    summary: "list tool calls that need approval; approve or deny them",
    options: {
      ...target,
      session: { type: "string", value: "<id>", about: "only for this session" },
      all: { type: "boolean", about: "include decided ones" },
      approve: { type: "string", value: "<id>", about: "approve this call once" },
      always: { type: "boolean", about: "with --approve: also similar calls in this session" },
      deny: { type: "string", value: "<id>", about: "deny this call" },
    },
    examples: ["parley approvals", "parley approvals --approve AB12", "parley approvals --deny AB12"],
    load: async () => (await import("../commands/approvals.ts")).run,
  },
  {
    name: "cost",
    summary: "show model usage and cost",
    details: "Calls of unknown price are counted separately, never as free.",
    options: {
      ...target,
      session: { type: "string", value: "<id>", about: "only for this session" },
      days: { type: "string", value: "<n>", about: "number of days (UTC), including today; default 7" },
    },
    examples: ["parley cost", "parley cost --days 30 --json | jq .total"],
    load: async () => (await import("../commands/cost.ts")).run,
  },
  {
    name: "model",
    summary: "show or set the model, effort and permission mode of a session",
    operands: "[<model>|default]",
    maxOperands: 1,
    details: "Values apply only to this session, from its next model call on; default resets them.",
    options: {
      ...target,
      ...session,
      effort: { type: "string", value: "<effort>", about: "reasoning effort", choices: [...efforts, "default"] },
      "permission-mode": {
        type: "string",
        value: "<mode>",
        about: "what runs without approval",
        choices: [...permissionModes, "default"],
      },
    },
    examples: ["parley model", "parley model claude-opus-4-5 --effort high", "parley model default"],
    load: async () => (await import("../commands/model.ts")).run,
  },
  {
    name: "compact",
    summary: "compact a session: replace older messages with a summary for the model",
    operands: "[<id or key>]",
    maxOperands: 1,
    options: { ...target, keep: { type: "string", value: "<what>", about: "what the summary must keep" } },
    examples: ["parley compact", "parley compact main --keep 'all file names'"],
    load: async () => (await import("../commands/compact.ts")).run,
  },
  {
    name: "checkpoints",
    summary: "list the file checkpoints of a session",
    operands: "[<id or key>]",
    maxOperands: 1,
    options: target,
    examples: ["parley checkpoints"],
    load: async () => (await import("../commands/checkpoints.ts")).run,
  },
  {
    name: "rewind",
    summary: "restore files to a checkpoint",
    operands: "<id or number>",
    maxOperands: 1,
    options: { ...target, ...session, "dry-run": { type: "boolean", about: "only print what would happen" } },
    examples: ["parley rewind 1 --dry-run", "parley rewind 0198c0de-…"],
    load: async () => (await import("../commands/rewind.ts")).run,
  },
];
