// One message and its answer, for pipes and programs: standard output contains only the answer or the events.

import type { QueueMode, SessionEvent } from "@parley/contracts";

import { asTyped } from "../io/command-name.ts";
import type { Listener, MessageExtras } from "./connection.ts";
import { type ChatPlace, mainSession, openChat, ownPrefix } from "./open.ts";
import { printAnswer } from "./print-answer.ts";
import type { Outcome } from "./turns.ts";
import type { Target } from "../cluster/target.ts";
import { CliError, exitCodes, type Io, note, print } from "../io/io.ts";
import { stripControl } from "../tables/format.ts";

/** Sends a text and prints the answer. Returns the exit code. */
export async function sendOnce(
  target: Target,
  place: ChatPlace,
  { text, mode, extras }: { text: string; mode: QueueMode | undefined; extras?: MessageExtras },
  io: Io,
  json: boolean,
): Promise<number> {
  const waiting = reconnectTimeout(io, place);
  const listener: Listener = {
    event: (session, event) => {
      if (json) print(io, JSON.stringify({ session, ...event }));
      else for (const line of asideOf(event)) note(io, stripControl(line));
    },
    frame: (frame) => {
      if (json) print(io, JSON.stringify(frame));
    },
    connected: waiting.connected,
    disconnected: waiting.disconnected,
  };
  const chat = await openChat(target, place, listener);
  const interrupts = onInterrupts(io, () => chat.conversation.cancel());
  try {
    if (!chat.canSpeak) throw new CliError("This session belongs to another channel: it is read-only here.");
    const outcome = await Promise.race([chat.conversation.say(text, mode, extras), waiting.lost, interrupts.twice]);
    const stopped = interrupts.exitCode();
    if (outcome === "interrupted") return stopped ?? exitCodes.interrupted;
    return finish(outcome, stopped, io, json);
  } finally {
    interrupts.stop();
    chat.close();
  }
}

/** Notes to print while waiting for the answer. */
function asideOf(event: SessionEvent): string[] {
  switch (event.type) {
    case "model.retry":
      return [`retrying the model call (${event.reason})`];
    case "model.failover":
      return [`switched from ${event.from} to ${event.to} (${event.reason})`];
    case "notice":
      return [event.text];
    case "approval.requested":
      return [
        `${event.tool} needs approval: ${event.summary}`,
        `answer with: ${asTyped("parley approvals")} --approve ${event.approvalId}   or --deny ${event.approvalId}`,
      ];
    default:
      return [];
  }
}

/** `stopped`: the exit code after a signal. */
function finish({ state, text }: Outcome, stopped: number | null, io: Io, json: boolean): number {
  const answered = state === "done" || state === "command";
  if (!json) {
    if (answered) printAnswer(io, text);
    else note(io, stripControl(text));
  }
  if (answered) return exitCodes.ok;
  return stopped ?? exitCodes.error;
}

const signals = ["SIGINT", "SIGTERM"] as const;

/** The first signal requests a stop, the second leaves. `exitCode` null: there was no signal. */
export function onInterrupts(io: Io, first: () => void) {
  const { promise: twice, resolve } = Promise.withResolvers<"interrupted">();
  let exitCode: number | null = null;
  const onSignal = (signal: (typeof signals)[number]): void => {
    if (exitCode !== null) return resolve("interrupted");
    exitCode = signal === "SIGTERM" ? exitCodes.terminated : exitCodes.interrupted;
    note(io, signal === "SIGTERM" ? "stopping" : "stopping; press Ctrl-C again to leave immediately");
    first();
  };
  for (const signal of signals) process.on(signal, onSignal);
  return {
    twice,
    exitCode: () => exitCode,
    stop: () => {
      for (const signal of signals) process.off(signal, onSignal);
    },
  };
}

/** How long to retry gateways before giving up. */
const patienceMs = 120_000;

interface Patience extends Pick<Listener, "connected" | "disconnected"> {
  /** Rejects with CliError when no gateway has answered for too long. */
  readonly lost: Promise<never>;
}

/** `place`: where the message was sent, so that its answer can be found later. */
export function reconnectTimeout(io: Io, { conversation, session, thread }: ChatPlace): Patience {
  const key = session ?? (thread === "own" || thread === "separate" ? `${ownPrefix}${conversation}` : mainSession);
  const { promise, reject } = Promise.withResolvers<never>();
  // The caller may no longer wait: a rejection must not be unhandled.
  promise.catch(() => undefined);
  let downSince: number | null = null;
  return {
    lost: promise,
    connected: (again) => {
      if (again) note(io, "reconnected");
      downSince = null;
    },
    disconnected: (reason) => {
      if (downSince === null) note(io, `connection lost (${reason}); reconnecting`);
      downSince ??= performance.now();
      if (performance.now() - downSince < patienceMs) return;
      reject(
        new CliError(
          "No gateway answers. An accepted message is stored and will be answered when the cluster runs again.",
          {
            fix: `Read the answer with: parley sessions show ${key}`,
          },
        ),
      );
    },
  };
}
