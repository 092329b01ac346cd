// `parley send`: a text out to a channel, or a message to the agent.

import { setTimeout as delay } from "node:timers/promises";

import { sayOnce } from "../chat/once.ts";
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
import { harmless } from "../text.ts";

const askEveryMs = 100;
const defaultWaitSeconds = 60;

export const run: Run = async (call) => {
  const { values, io } = call;
  const text = await textOf(call);
  const target = findTarget(values, io);
  if (values.has("channel")) return sendToChannel(target, values, text, io);
  for (const name of ["account", "to"]) {
    if (values.has(name))
      throw new UsageError(`--${name} goes with --channel.`, "parley send --help shows both forms.");
  }
  return sendToAgent(target, values, text, io);
};

/** The operand, or standard input where there is none or it is `-`. */
async function textOf({ positionals, io }: Call): Promise<string> {
  const [given = "-"] = positionals;
  if (given === "-" && io.stdin.isTTY) throw new UsageError("What shall be sent? parley send 'text'");
  const text = given === "-" ? await readAll(io.stdin) : given;
  if (text.trim() === "") throw new UsageError("There is nothing to send: the text is empty.");
  return text;
}

async function sendToAgent(target: Target, values: OptionValues, text: string, io: Io): Promise<number> {
  const named = values.text("conversation");
  const mode = modeOf(values);
  if (values.has("wait")) {
    return sayOnce(
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
  else if ("messageId" in kept) print(io, `${kept.messageId}  kept, in session ${kept.sessionId}`);
  else print(io, kept.text);
  return exitCodes.ok;
}

async function sendToChannel(target: Target, values: OptionValues, text: string, io: Io): Promise<number> {
  const conversation = values.text("to");
  if (conversation === undefined) throw new UsageError("To whom? --to names the chat there, for example --to '#team'.");
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
  else print(io, `${outboxId}  ${delivery.state}${delivery.error === null ? "" : `: ${harmless(delivery.error)}`}`);
  if (delivery.state === "unknown") {
    note(io, "It was being sent when the connection broke: it may have arrived, and is not sent twice by itself.");
  }
  if (delivery.state === "sent") return exitCodes.ok;
  if (isOpen(delivery) && values.has("wait"))
    note(io, "It has not gone out yet; it stays in the outbox until it expires.");
  return isOpen(delivery) && !values.has("wait") ? exitCodes.ok : exitCodes.error;
}

function isOpen({ state }: Delivery): boolean {
  return state === "pending" || state === "sending";
}

function waitSeconds(values: OptionValues): number {
  const text = values.text("timeout");
  if (text === undefined) return defaultWaitSeconds;
  if (!/^\d{1,6}$/.test(text)) throw new UsageError(`--timeout: "${text}" is no number of seconds.`);
  return Number(text);
}
