// `parley send`: sends a text to a channel, or a message to the agent.

import { setTimeout as delay } from "node:timers/promises";

import { sendOnce } from "../chat/send-once.ts";
import { modeOf } from "../chat/mode.ts";
import { callPlace, ownConversation } from "../chat/open.ts";
import { readAll } from "../chat/stdin.ts";
import { Gateway } from "../cluster/gateway.ts";
import { DeliveryAnswer, KeptAnswer, SentAnswer, type Delivery } from "../cluster/shapes.ts";
import { findTarget, type Target } from "../cluster/target.ts";
import type { Call, Run } from "../command-line/command.ts";
import type { OptionValues } from "../command-line/options.ts";
import { UsageError } from "../errors.ts";
import { exitCodes } from "../exit-codes.ts";
import { note, print, printJson, type Io } from "../io.ts";
import { stripControl } from "../text.ts";

const askEveryMs = 100;
const defaultWaitSeconds = 60;

export const run: Run = async (call) => {
  const { values, io } = call;
  const text = await textOf(call);
  const target = findTarget(values, io);
  if (values.has("channel")) return sendToChannel(target, values, text, io);
  for (const name of ["account", "to"]) {
    if (values.has(name)) throw new UsageError(`--${name} needs --channel.`, "parley send --help shows both forms.");
  }
  return sendToAgent(target, values, text, io);
};

/** The operand, or standard input if the operand is missing or `-`. */
async function textOf({ positionals, io }: Call): Promise<string> {
  const [given = "-"] = positionals;
  if (given === "-" && io.stdin.isTTY) throw new UsageError("Name a text: parley send 'text'");
  const text = given === "-" ? await readAll(io.stdin) : given;
  if (text.trim() === "") throw new UsageError("The text is empty: there is nothing to send.");
  return text;
}

async function sendToAgent(target: Target, values: OptionValues, text: string, io: Io): Promise<number> {
  const named = values.text("conversation");
  const mode = modeOf(values);
  if (values.has("wait")) {
    return sendOnce(
      target,
      { ...callPlace("once", named, text), session: undefined },
      { text, mode },
      io,
      values.has("json"),
    );
  }
  const conversation = named ?? ownConversation;
  const kept = await new Gateway(target).post(
    "/api/messages",
    { text, conversation, ...(mode === undefined ? {} : { mode }) },
    KeptAnswer,
  );
  if (values.has("json")) printJson(io, kept);
  else if ("messageId" in kept) print(io, `${kept.messageId}  stored in session ${kept.sessionId}`);
  else print(io, kept.text);
  return exitCodes.ok;
}

async function sendToChannel(target: Target, values: OptionValues, text: string, io: Io): Promise<number> {
  const conversation = values.text("to");
  if (conversation === undefined) throw new UsageError("Name the chat with --to, for example --to '#team'.");
  const address = { channel: values.text("channel"), account: values.text("account") ?? "default", conversation };
  const gateway = new Gateway(target);
  const { outboxId } = await gateway.post("/api/send", { ...address, text }, SentAnswer);
  let delivery = await gateway.get(`/api/outbox/${outboxId}`, DeliveryAnswer);
  if (values.has("wait")) {
    const until = performance.now() + waitSeconds(values) * 1_000;
    while (isOpen(delivery) && performance.now() < until) {
      await delay(askEveryMs);
      delivery = await gateway.get(`/api/outbox/${outboxId}`, DeliveryAnswer);
    }
  }
  if (values.has("json")) printJson(io, { outboxId, ...delivery });
  else print(io, `${outboxId}  ${delivery.state}${delivery.error === null ? "" : `: ${stripControl(delivery.error)}`}`);
  if (delivery.state === "unknown") {
    note(io, "The connection broke while it was being sent: it may have arrived, and is not sent again automatically.");
  }
  if (delivery.state === "sent") return exitCodes.ok;
  if (isOpen(delivery) && values.has("wait")) note(io, "It is not sent yet; it stays in the outbox until it expires.");
  return isOpen(delivery) && !values.has("wait") ? exitCodes.ok : exitCodes.error;
}

function isOpen({ state }: Delivery): boolean {
  return state === "pending" || state === "sending";
}

function waitSeconds(values: OptionValues): number {
  const text = values.text("timeout");
  if (text === undefined) return defaultWaitSeconds;
  if (!/^\d{1,6}$/.test(text)) throw new UsageError(`--timeout: "${text}" is not a number of seconds.`);
  return Number(text);
}
