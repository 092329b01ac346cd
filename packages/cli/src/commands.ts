// The table of all commands. The code of a command is imported when it runs.

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
      "what happens to the message while the agent is busy; default: the settings, or queue when waiting for the answer",
    choices: queueModes,
  },
} as const;

const conversation = {
  conversation: {
    type: "string",
    value: "<name>",
    about: 'name of the chat; default "cli", or a new session when waiting for the answer',
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
    details: `On a terminal, the chat streams the answer and shows tool calls. Ctrl-C stops the running answer;
press it twice at the prompt to leave (or use Ctrl-D or /quit). In a pipe, all of standard input is one message, and only
the answer is printed; with --json, the events, one per line. Such a message gets a turn of its own, in a new session
unless --conversation or --session names one.`,
    options: {
      ...target,
      ...conversation,
      ...mode,
      session: { type: "string", value: "<id>", about: "follow one whole session, by id or key" },
    },
    examples: ["parley chat", "echo 'what is in my workspace?' | parley chat", "git diff | parley chat --json"],
    load: async () => (await import("./commands/chat.ts")).run,
  },
  {
    name: "run",
    summary: "run one prompt and print the result, for scripts and programs",
    operands: "[<prompt>]",
    maxOperands: 1,
    details: `Without a prompt, or with -, standard input is the prompt. Each run starts a new session; continue it with --resume and its
session_id. --continue, --resume and --conversation select another session. With [session] synchronous = "shared" (the preset
"singleton") the policy chooses the session. Regardless of the session and the queue mode, each prompt gets a turn of its own: it waits for the
running turn, and nothing joins it. Only --mode steer or coalesce lets it share a turn and its answer.
"parley sessions --calls" lists the sessions of runs; they are deleted after 30 idle days ([session] call_retention_days).
Output formats: text prints the answer; json prints the result with cost and usage; stream-json prints one line per message,
from "system init" to "result". With --input-format stream-json, standard input contains messages
({"type":"user","message":{"role":"user","content":"..."}}) and control requests, one per line; an approval request for a tool
call is a control_request "can_use_tool". Without --input-format stream-json and without a terminal, nobody can approve a tool
call: a call that needs approval is denied at once, and standard error names it. Exit codes: 0 success, 1 the turn failed, 2 invalid usage, 130 interrupted.`,
    options: {
      ...targetOptions,
      ...conversation,
      ...mode,
      output: { type: "string", value: "<format>", about: "text, json or stream-json", choices: outputFormats },
      "input-format": { type: "string", value: "<format>", about: "text or stream-json", choices: inputFormats },
      "max-turns": { type: "string", value: "<n>", about: "stop after this many model calls" },
      "permission-mode": {
        type: "string",
        value: "<mode>",
        about: "what runs without approval during this run",
        choices: permissionModeNames,
      },
      resume: { type: "string", value: "<id>", about: "continue this session, by id or key" },
      continue: { type: "boolean", about: "continue the most recently used session" },
      partial: { type: "boolean", about: "with stream-json: also print text deltas" },
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
    details: `Without a text, or with -, standard input is sent. Without --channel, the text is a message to the agent. With --wait that message
gets a turn of its own, in a new session unless --conversation names one.`,
    options: {
      ...target,
      ...conversation,
      ...mode,
      channel: { type: "string", value: "<kind>", about: "telegram, irc …" },
      account: { type: "string", value: "<name>", about: 'the account name in parley.toml; default "default"' },
      to: { type: "string", value: "<chat>", about: "the chat on that channel" },
      wait: { type: "boolean", about: "wait for the delivery or the answer" },
      timeout: { type: "string", value: "<seconds>", about: "how long to wait for a delivery; default 60" },
    },
    examples: [
      "parley send --channel irc --account net --to '#team' 'the build is green' --wait",
      "parley send 'remind me of the meeting' --wait",
    ],
    load: async () => (await import("./commands/send.ts")).run,
  },
  {
    name: "status",
    summary: "show all replicas, the leader, the model and the queues",
    options: { ...target, watch: { type: "boolean", short: "w", about: "refresh every two seconds" } },
    examples: ["parley status", "parley status --json | jq -r '.replicas[] | select(.role == \"leader\").replica'"],
    load: async () => (await import("./commands/status.ts")).run,
  },
  ...controlCommands,
  {
    name: "stop",
    summary: "stop the running turn of a session and cancel its queued messages",
    operands: "[<id or key>]",
    maxOperands: 1,
    details: "The default session is that of `parley chat`.",
    options: { ...target, "keep-waiting": { type: "boolean", about: "keep queued messages" } },
    examples: ["parley stop", "parley stop http:default:cli"],
    load: async () => (await import("./commands/stop.ts")).run,
  },
  {
    name: "pairing list",
    summary: "list open pairing requests",
    options: target,
    examples: ["parley pairing list"],
    load: async () => (await import("./commands/pairing-list.ts")).run,
  },
  {
    name: "pairing approve",
    summary: "admit the person who received this code",
    operands: "<code>",
    maxOperands: 1,
    details: `Roles:
user (the default): has conversations of their own with the agent, each with a separate workspace. There the agent reads files
without approval, runs commands in the sandbox by [permissions], and needs your approval to write or send elsewhere.
They cannot reach your files, memory and secrets, unless [workspace] share_with_users = true.
guest: talks to the agent, which has no file or command tools for them except those in [permissions] guest_allow.
owner: shares your thread, your memory and your workspace; the agent does for them everything that it does for you.
An IRC nick proves nothing: write people as account:<name> in owners and allow_from (docs/configuration.md).`,
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
    summary: "check parley.toml and list its mistakes",
    operands: "[<file>]",
    maxOperands: 1,
    options: { ...homeOption, ...jsonOption, ...settingsOptions },
    examples: ["parley config check", "parley config check ./parley.toml"],
    load: async () => (await import("./commands/config-check.ts")).run,
  },
  {
    name: "config print",
    summary: "print the effective settings, including defaults",
    operands: "[<file>]",
    maxOperands: 1,
    details: "Precedence: flags, PARLEY__TABLE__KEY variables, parley.toml, its preset, defaults.",
    options: {
      ...homeOption,
      ...jsonOption,
      ...settingsOptions,
      origin: { type: "boolean", about: "show the source of each value" },
    },
    examples: ["parley config print --origin", "parley config print --json | jq .agent"],
    load: async () => (await import("./commands/config-print.ts")).run,
  },
  {
    name: "doctor",
    summary: "check every part and suggest fixes",
    details:
      "The checks are independent of each other. The exit code is 3 if there are errors; warnings leave it at 0.",
    options: target,
    examples: ["parley doctor", "parley doctor --json | jq '.checks[] | select(.severity != \"ok\")'"],
    load: async () => (await import("./commands/doctor.ts")).run,
  },
  {
    name: "logs",
    summary: "print the logs of all processes on this machine, merged by time",
    options: {
      ...homeOption,
      ...jsonOption,
      follow: { type: "boolean", short: "f", about: "keep printing new lines" },
      service: { type: "string", value: "<name>", about: "a service, a replica (store-1) or a server (redis)" },
      level: { type: "string", value: "<level>", about: "minimum level", choices: levels },
      since: { type: "string", value: "<time>", about: "an age such as 30s, 10m, 2h or 1d, or a date" },
      lines: { type: "string", short: "n", value: "<count>", about: "only the last lines; default 20 with --follow" },
    },
    examples: ["parley logs -f", "parley logs --service agent-core --level warn --since 10m"],
    load: async () => (await import("./commands/logs.ts")).run,
  },
  {
    name: "completion",
    summary: "print a completion script for your shell",
    operands: "bash|zsh|fish",
    maxOperands: 1,
    options: {},
    examples: ["source <(parley completion bash)", "parley completion fish > ~/.config/fish/completions/parley.fish"],
    load: async () => (await import("./commands/completion.ts")).completionOf(commands),
  },
];
