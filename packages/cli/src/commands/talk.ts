// The commands that send messages: `parley chat`, `parley run` and `parley send`.

import { setTimeout as delay } from "node:timers/promises";

import { channelEntries, exampleAddress, queueModes } from "@parley/contracts";

import type { MessageExtras } from "../chat/connection.ts";
import { sendOnce } from "../chat/once.ts";
import { callPlace, modeOf, ownConversation } from "../chat/open.ts";
import { printAnswer } from "../chat/print-answer.ts";
import { api, type Answer } from "../cluster/api.ts";
import { Gateway } from "../cluster/gateway.ts";
import { findTarget, type Target } from "../cluster/target.ts";
import { exitCodes, note, print, printJson, readAll, UsageError, type Io } from "../io/io.ts";
import { flag, jsonOption, targetOptions, text, type OptionTable, type OptionValues } from "../io/options.ts";
import { readFiles, storeFiles } from "../run/attachments.ts";
import { inputFormats, outputFormats, permissionModeNames } from "../run/options.ts";
import { runPrompt } from "../run/run.ts";
import { stripControl } from "../tables/format.ts";
import type { Call, CommandSpec } from "./command.ts";

const conversationOptions: OptionTable = {
  conversation: text("<name>", 'name of the chat; default "cli", or a new session when waiting for the answer'),
  mode: text(
    "<mode>",
    "what happens to the message while the agent is busy; default: the settings, or queue when waiting for the answer",
    queueModes,
  ),
};

const attachOption = text("<file>", "send a file with the message; may be repeated");

/** A conversation on a terminal; in a pipe, one message and its answer. */
async function chat({ values, io }: Call): Promise<number> {
  const target = findTarget(values, io);
  const session = values.text("session");
  const named = values.text("conversation");
  const json = values.has("json");
  if (io.stdin.isTTY && io.stdout.isTTY && !json) return chatOnTerminal(target, values, io);
  for (const name of terminalOptionNames) {
    if (values.has(name)) throw new UsageError(`--${name} needs a terminal.`, `In a pipe: parley run --${name}`);
  }
  const message = await readAll(io.stdin);
  if (message.trim() === "")
    throw new UsageError("Standard input is empty: there is nothing to send.", "echo hi | parley chat");
  const place = { ...callPlace("once", named, message), session };
  const extras = await extrasOf(target, values, io);
  return sendOnce(target, place, { text: message, mode: modeOf(values), extras }, io, json);
}

/** Stores the files of `--attach`. Throws CliError for a file that cannot be read or is refused. */
async function extrasOf(target: Target, values: OptionValues, io: Io): Promise<Pick<MessageExtras, "attachments">> {
  const files = await readFiles(values.texts("attach"), io);
  return files.length === 0 ? {} : { attachments: await storeFiles(new Gateway(target), files) };
}

/** Options of `parley chat` on a terminal only. */
const terminalOptionNames = ["resume", "continue", "fork", "model", "permission-mode", "profile", "workspace"];

async function chatOnTerminal(target: Target, values: OptionValues, io: Io): Promise<number> {
  if (values.has("attach"))
    throw new UsageError("--attach applies to one message in a pipe.", "In a chat, name files in the text: @path");
  const chosen = ["session", "resume", "continue"].filter((name) => values.has(name));
  if (chosen.length > 1) throw new UsageError(`--${chosen.join(" and --")} choose different sessions: name one.`);
  const model = values.text("model");
  const permissionMode = values.text("permission-mode");
  const workspace = values.text("workspace");
  const commands = [
    ...(workspace === undefined ? [] : [`/workspace ${workspace}`]),
    ...(model === undefined ? [] : [`/model ${model}`]),
    ...(permissionMode === undefined ? [] : [`/mode ${permissionMode}`]),
  ];
  // Loaded here: other commands do not need it.
  const { runChat } = await import("../terminal/chat.ts");
  const start = {
    conversation: values.text("conversation"),
    session: values.text("session"),
    resume: values.text("resume"),
    continue: values.has("continue"),
    fork: values.has("fork"),
    profile: values.text("profile"),
    workspace,
  };
  return runChat(target, { ...start, mode: modeOf(values), commands }, io);
}

const pollMs = 100;
const defaultWaitSeconds = 60;

/** Sends the operand, or standard input if the operand is missing or `-`. */
async function send({ values, positionals: [given = "-"], io }: Call): Promise<number> {
  if (given === "-" && io.stdin.isTTY) throw new UsageError("Name a text: parley send 'text'");
  const message = given === "-" ? await readAll(io.stdin) : given;
  const attaches = values.has("attach");
  if (message.trim() === "" && !attaches) throw new UsageError("The text is empty: there is nothing to send.");
  const target = findTarget(values, io);
  if (values.has("channel") && attaches)
    throw new UsageError("--attach applies to messages to the agent, not to texts for a channel.");
  if (values.has("channel")) return sendToChannel(target, values, message, io);
  for (const name of ["account", "to"]) {
    if (values.has(name)) throw new UsageError(`--${name} needs --channel.`, "parley send --help shows both forms.");
  }
  return sendToAgent(target, values, message, io);
}

async function sendToAgent(target: Target, values: OptionValues, message: string, io: Io): Promise<number> {
  const named = values.text("conversation");
  const mode = modeOf(values);
  const extras = await extrasOf(target, values, io);
  if (values.has("wait")) {
    const place = { ...callPlace("once", named, message), session: undefined };
    return sendOnce(target, place, { text: message, mode, extras }, io, values.has("json"));
  }
  const input = { text: message, conversation: named ?? ownConversation, mode, ...extras };
  const stored = await new Gateway(target).run(api.sendMessage, input);
  if (values.has("json")) printJson(io, stored);
  else if ("messageId" in stored) print(io, `${stored.messageId}  stored in session ${stored.sessionId}`);
  else printAnswer(io, stored.text);
  return exitCodes.ok;
}

async function sendToChannel(target: Target, values: OptionValues, message: string, io: Io): Promise<number> {
  const conversation = values.text("to");
  if (conversation === undefined) throw new UsageError("Name the chat with --to, for example --to '#team'.");
  const seconds = values.number("timeout", "a number of seconds", { min: 0, max: 999_999 }) ?? defaultWaitSeconds;
  const address = { channel: values.text("channel"), account: values.text("account") ?? "default", conversation };
  const gateway = new Gateway(target);
  const { outboxId } = await gateway.run(api.sendText, { ...address, text: message });
  let delivery = await gateway.run(api.delivery, { id: outboxId });
  const wait = values.has("wait");
  const until = performance.now() + (wait ? seconds * 1_000 : 0);
  while (isOpen(delivery) && performance.now() < until) {
    await delay(pollMs);
    delivery = await gateway.run(api.delivery, { id: outboxId });
  }
  if (values.has("json")) printJson(io, { outboxId, ...delivery });
  else print(io, `${outboxId}  ${delivery.state}${delivery.error === null ? "" : `: ${stripControl(delivery.error)}`}`);
  if (delivery.state === "unknown") {
    note(io, "The connection broke while it was being sent: it may have arrived, and is not sent again automatically.");
  }
  if (delivery.state === "sent") return exitCodes.ok;
  if (isOpen(delivery) && wait) note(io, "It is not sent yet; it stays in the outbox until it expires.");
  return isOpen(delivery) && !wait ? exitCodes.ok : exitCodes.error;
}

function isOpen({ state }: Answer<typeof api.delivery>): boolean {
  return state === "pending" || state === "sending";
}

const [exampleChannel, exampleAccount, exampleChat] = exampleAddress.split(":");

export const talkCommands: readonly CommandSpec[] = [
  {
    name: "chat",
    summary: "talk to the agent; in a pipe, one message and its answer",
    details: `On a terminal, the chat streams the answer and shows tool calls. Esc or Ctrl-C stops the running answer;
press Ctrl-C twice at the prompt to leave (or use Ctrl-D, exit or quit). /help lists the commands and keys. In a pipe, all of standard
input is one message, and only the answer is printed; with --json, the events, one per line. Such a message gets a turn of its
own, in a new session unless --conversation or --session names one.`,
    options: {
      ...targetOptions,
      ...jsonOption,
      ...conversationOptions,
      session: text("<id>", "follow one whole session, by id or key"),
      attach: attachOption,
      resume: text("<id>", "continue this session, by id, key or title"),
      continue: flag("continue the most recently used session; with --workspace, of that folder"),
      fork: flag("continue a copy of the session"),
      model: text("<name>", "the model of the session from now on"),
      "permission-mode": text("<mode>", "what runs without approval in the session", permissionModeNames),
      profile: text("<name>", "let this profile of parley.toml answer, in a session of its own"),
      workspace: text("<name>", "work in this folder of [workspace.folders], in a conversation of its own"),
    },
    examples: [
      "parley chat",
      "parley chat --resume 'plan of the week'",
      "echo 'what is in my workspace?' | parley chat",
      "git diff | parley chat --json",
    ],
    run: chat,
  },
  {
    name: "run",
    summary: "run one prompt and print the result, for scripts and programs",
    operands: ["[<prompt>]"],
    details: `Without a prompt, or with -, standard input is the prompt. Each run starts a new session; continue it with --resume and its
session_id. --continue, --resume and --conversation select another session. With [session] synchronous = "shared" (the preset
"singleton") the policy chooses the session. Regardless of the session and the queue mode, each prompt gets a turn of its own: it waits for the
running turn, and nothing joins it. Only --mode steer or coalesce lets it share a turn and its answer.
"parley sessions --calls" lists the sessions of runs; they are deleted after 30 idle days ([session] call_retention_days).
Output formats: text prints the answer; json prints the result with cost and usage; stream-json prints one line per message,
from "system init" to "result". With --input-format stream-json, standard input contains messages
({"type":"user","message":{"role":"user","content":"..."}}) and control requests, one per line; an approval request for a tool
call is a control_request "can_use_tool". Without --input-format stream-json and without a terminal, nobody can approve a tool
call: a call that needs approval is denied immediately, and standard error names it. Exit codes: 0 success, 1 the turn failed, 2 invalid usage, 130 interrupted, 143 terminated.`,
    options: {
      ...targetOptions,
      ...conversationOptions,
      output: text("<format>", "text, json or stream-json", outputFormats),
      "input-format": text("<format>", "text or stream-json", inputFormats),
      "max-turns": text("<n>", "stop after this many model calls of the run"),
      "max-usd": text("<amount>", "stop when the run has cost this much"),
      profile: text("<name>", "let this profile of parley.toml answer, in a session of its own"),
      workspace: text("<name>", "work in this folder of [workspace.folders], in a new session"),
      "permission-mode": text("<mode>", "what runs without approval during this run", permissionModeNames),
      resume: text("<id>", "continue this session, by id, key or title"),
      continue: flag("continue the most recently used session; with --workspace, of that folder"),
      new: flag("start a new session, also with a named conversation"),
      fork: flag("continue a copy of the session; with --resume or --continue"),
      attach: attachOption,
      partial: flag("with stream-json: also print text deltas"),
    },
    examples: [
      "parley run 'which files are in the workspace?'",
      "parley run --output json 'sum up notes.md' | jq .total_cost_usd",
      "git diff | parley run --output stream-json --max-turns 5 -",
    ],
    run: ({ values, positionals, io }) => runPrompt(values, positionals, io),
  },
  {
    name: "send",
    summary: "send a text to a channel, or a message to the agent",
    operands: ["[<text>]"],
    details: `Without a text, or with -, standard input is sent. Without --channel, the text is a message to the agent. With --wait that message
gets a turn of its own, in a new session unless --conversation names one.`,
    options: {
      ...targetOptions,
      ...jsonOption,
      ...conversationOptions,
      channel: text("<kind>", channelEntries.map(({ name }) => name).join(", ")),
      account: text("<name>", 'the account name in parley.toml; default "default"'),
      to: text("<chat>", "the chat on that channel"),
      attach: attachOption,
      wait: flag("wait for the delivery or the answer"),
      timeout: text("<seconds>", "how long to wait for a delivery; default 60"),
    },
    examples: [
      `parley send --channel ${exampleChannel} --account ${exampleAccount} --to ${exampleChat} 'the build is green' --wait`,
      "parley send 'remind me of the meeting' --wait",
      "parley send 'what is on this picture?' --attach photo.jpg --wait",
    ],
    run: send,
  },
];
