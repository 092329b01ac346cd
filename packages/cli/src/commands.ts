// All commands there are. Each one's code is fetched when it is run.

import { queueModes } from "@parley/contracts";

import type { CommandSpec } from "./command-line/command.ts";
import { homeOption, jsonOption, settingsOptions, targetOptions } from "./command-line/options.ts";
import { cronCommands } from "./cron/commands.ts";
import { controlCommands } from "./control/commands.ts";
import { docsCommands } from "./docs/commands.ts";
import { levels } from "./logs/line.ts";
import { mcpCommands } from "./mcp/commands.ts";
import { inputFormats, outputFormats, permissionModeNames } from "./run/options.ts";

const target = { ...targetOptions, ...jsonOption } as const;

const mode = {
  mode: {
    type: "string",
    value: "<mode>",
    about:
      "what is done with it while the agent is busy; by default as the settings have it, or queue where the answer is awaited",
    choices: queueModes,
  },
} as const;

const conversation = {
  conversation: {
    type: "string",
    value: "<name>",
    about: 'names the chat; "cli" by default, where the answer is awaited a session of its own',
  },
} as const;

export const commands: readonly CommandSpec[] = [
  {
    name: "up",
    summary: "start Parley on this machine (the same as npm start)",
    options: {},
    passThrough: true,
    examples: ["parley up --replicas agent-core=2,channel-gateway=2", "parley up --preset goat --set limits.max_usd=2"],
    load: async () => (await import("./commands/up.ts")).run,
  },
  {
    name: "chat",
    summary: "talk to the agent; in a pipe, one message and its answer",
    details: `On a terminal the answer is shown as it comes, with the tools that are used. Ctrl-C stops the running answer;
at the prompt, twice, it leaves (also Ctrl-D and /quit). In a pipe all of standard input is one message, and only
the answer is printed; with --json the events, one a line. Such a message is a turn of its own, in a session of its own
unless --conversation or --session names one.`,
    options: {
      ...target,
      ...conversation,
      ...mode,
      session: { type: "string", value: "<id>", about: "follow one session whole, by id or key" },
    },
    examples: ["parley chat", "echo 'what is in my workspace?' | parley chat", "git diff | parley chat --json"],
    load: async () => (await import("./commands/chat.ts")).run,
  },
  {
    name: "run",
    summary: "one prompt, and what comes of it: for scripts and programs",
    operands: "[<prompt>]",
    maxOperands: 1,
    details: `Without a prompt, or with -, standard input is the prompt. Each run has a session of its own, which its session_id and
--resume go on with; --continue, --resume and --conversation name another one. With [session] synchronous = "shared" (the preset
"singleton") the policy chooses the session. Regardless of the session and the queue mode, each prompt is a turn of its own: it waits for the
running turn, nothing joins it, and the answer is its own. Only --mode steer or coalesce lets it share a turn, and its answer.
"parley sessions --calls" lists the sessions of runs; they are deleted after 30 idle days ([session] call_retention_days).
Formats of the output: text is the answer; json the result, with
cost and usage; stream-json a line for every message, from "system init" to "result". With --input-format stream-json standard input
is messages ({"type":"user","message":{"role":"user","content":"..."}}) and control requests, a line each; a question about a tool
call is a control_request "can_use_tool". Without --input-format stream-json, and outside of a terminal, nobody can approve a tool
call: one that needs approval is denied at once, and standard error names it. Exit codes: 0 success, 1 the turn did not end well, 2 wrong usage, 130 interrupted.`,
    options: {
      ...targetOptions,
      ...conversation,
      ...mode,
      output: { type: "string", value: "<format>", about: "text, json or stream-json", choices: outputFormats },
      "input-format": { type: "string", value: "<format>", about: "text or stream-json", choices: inputFormats },
      "max-turns": { type: "string", value: "<n>", about: "model calls after which it is stopped" },
      "permission-mode": {
        type: "string",
        value: "<mode>",
        about: "what runs without approval while this runs",
        choices: permissionModeNames,
      },
      resume: { type: "string", value: "<id>", about: "go on with this session, by id or key" },
      continue: { type: "boolean", about: "go on with the session used last" },
      partial: { type: "boolean", about: "with stream-json: also what is being written, piece by piece" },
    },
    examples: [
      "parley run 'which files are in the workspace?'",
      "parley run --output json 'sum up notes.md' | jq .total_cost_usd",
      "git diff | parley run --output stream-json --max-turns 5 -",
    ],
    load: async () => (await import("./commands/run.ts")).run,
  },
  {
    name: "send",
    summary: "send a text to a channel, or a message to the agent",
    operands: "[<text>]",
    maxOperands: 1,
    details: `Without a text, or with -, standard input is sent. Without --channel it is a message to the agent. With --wait that message is
a turn of its own, in a session of its own unless --conversation names one.`,
    options: {
      ...target,
      ...conversation,
      ...mode,
      channel: { type: "string", value: "<kind>", about: "telegram, irc …" },
      account: { type: "string", value: "<name>", about: 'the account on it, as in parley.toml; "default" by default' },
      to: { type: "string", value: "<chat>", about: "the chat there" },
      wait: { type: "boolean", about: "wait for the delivery, or for the answer" },
      timeout: { type: "string", value: "<seconds>", about: "how long to wait for a delivery; 60 by default" },
    },
    examples: [
      "parley send --channel irc --account net --to '#team' 'the build is green' --wait",
      "parley send 'remind me of the meeting' --wait",
    ],
    load: async () => (await import("./commands/send.ts")).run,
  },
  {
    name: "status",
    summary: "every replica, who leads, which model answers, what waits",
    options: { ...target, watch: { type: "boolean", short: "w", about: "again every two seconds" } },
    examples: ["parley status", "parley status --json | jq -r '.replicas[] | select(.role == \"leader\").replica'"],
    load: async () => (await import("./commands/status.ts")).run,
  },
  ...controlCommands,
  {
    name: "stop",
    summary: "stop what a session does, and take back what waits there",
    operands: "[<id or key>]",
    maxOperands: 1,
    details: "Without a session it is the one that `parley chat` speaks in.",
    options: { ...target, "keep-waiting": { type: "boolean", about: "leave what waits" } },
    examples: ["parley stop", "parley stop http:default:cli"],
    load: async () => (await import("./commands/stop.ts")).run,
  },
  {
    name: "pairing list",
    summary: "who asked to be let in",
    options: target,
    examples: ["parley pairing list"],
    load: async () => (await import("./commands/pairing-list.ts")).run,
  },
  {
    name: "pairing approve",
    summary: "let the person in who was shown this code",
    operands: "<code>",
    maxOperands: 1,
    details: `Roles: user (the default) talks to the agent in conversations of their own. For each of them the agent has a workspace of its
own: it reads files there unasked, runs commands in the sandbox as [permissions] says, and asks you before it writes or sends elsewhere.
Your files, memory and secrets stay yours, unless [workspace] share_with_users = true.
guest: talks to the agent, which has no file and command tools for them beyond [permissions] guest_allow.
owner is you: shares your thread, your memory and your workspace, and the agent does for them what it does for you.
On IRC a nick proves nothing: name people as account:<name> in owners and allow_from (docs/configuration.md).`,
    options: {
      ...target,
      role: { type: "string", value: "<role>", about: "owner, user or guest", choices: ["owner", "user", "guest"] },
    },
    examples: ["parley pairing approve ABCD-EFGH", "parley pairing approve ABCD-EFGH --role owner"],
    load: async () => (await import("./commands/pairing-approve.ts")).run,
  },
  ...docsCommands,
  ...cronCommands,
  ...mcpCommands,
  {
    name: "config check",
    summary: "say what is wrong in parley.toml",
    operands: "[<file>]",
    maxOperands: 1,
    options: { ...homeOption, ...jsonOption, ...settingsOptions },
    examples: ["parley config check", "parley config check ./parley.toml"],
    load: async () => (await import("./commands/config-check.ts")).run,
  },
  {
    name: "config print",
    summary: "the settings that hold, defaults filled in",
    operands: "[<file>]",
    maxOperands: 1,
    details:
      "Flags win over PARLEY__TABLE__KEY variables, these over parley.toml, it over its preset, that over the defaults.",
    options: {
      ...homeOption,
      ...jsonOption,
      ...settingsOptions,
      origin: { type: "boolean", about: "where each value came from" },
    },
    examples: ["parley config print --origin", "parley config print --json | jq .agent"],
    load: async () => (await import("./commands/config-print.ts")).run,
  },
  {
    name: "doctor",
    summary: "look at every part and say what to do about what is wrong",
    details: "Every check stands alone. The exit code is 3 when there are errors; warnings leave it 0.",
    options: target,
    examples: ["parley doctor", "parley doctor --json | jq '.checks[] | select(.severity != \"ok\")'"],
    load: async () => (await import("./commands/doctor.ts")).run,
  },
  {
    name: "logs",
    summary: "the logs of all processes on this machine as one",
    options: {
      ...homeOption,
      ...jsonOption,
      follow: { type: "boolean", short: "f", about: "go on with what is written" },
      service: { type: "string", value: "<name>", about: "a service, a replica (store-1) or a server (redis)" },
      level: { type: "string", value: "<level>", about: "this level and what is worse", choices: levels },
      since: { type: "string", value: "<time>", about: "30s, 10m, 2h, 1d ago, or a date" },
      lines: { type: "string", short: "n", value: "<count>", about: "the last ones only; 20 with --follow" },
    },
    examples: ["parley logs -f", "parley logs --service agent-core --level warn --since 10m"],
    load: async () => (await import("./commands/logs.ts")).run,
  },
  {
    name: "completion",
    summary: "the script that makes your shell complete all this",
    operands: "bash|zsh|fish",
    maxOperands: 1,
    options: {},
    examples: ["source <(parley completion bash)", "parley completion fish > ~/.config/fish/completions/parley.fish"],
    load: async () => (await import("./commands/completion.ts")).completionOf(commands),
  },
];
