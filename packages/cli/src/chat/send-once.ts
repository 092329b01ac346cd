// One message and its answer, for pipes and programs: standard output contains only the answer or the events.

import type { QueueMode, SessionEvent } from "@parley/contracts";

import { exitCodes } from "../exit-codes.ts";
import { CliError } from "../errors.ts";
import { note, print, type Io } from "../io.ts";
import type { Target } from "../cluster/target.ts";
import { stripControl } from "../text.ts";
import type { Listener } from "./conversation-ports.ts";
import { onInterrupts } from "./interrupts.ts";
import { openChat, type ChatPlace } from "./open.ts";
import { reconnectTimeout } from "./reconnect-timeout.ts";
import type { Outcome } from "./sent-messages.ts";

/** Sends a text and prints the answer. Returns the exit code. */
export async function sendOnce(
  target: Target,
  place: ChatPlace,
  { text, mode }: { text: string; mode: QueueMode | undefined },
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
    const outcome = await Promise.race([chat.conversation.say(text, mode), waiting.lost, interrupts.twice]);
    if (outcome === "interrupted") return exitCodes.interrupted;
    return finish(outcome, interrupts.happened(), io, json);
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
        `answer with: parley approvals --approve ${event.approvalId}   or --deny ${event.approvalId}`,
      ];
    default:
      return [];
  }
}

function finish({ state, text }: Outcome, interrupted: boolean, io: Io, json: boolean): number {
  const answered = state === "done" || state === "command";
  if (!json) {
    if (answered) print(io, text);
    else note(io, stripControl(text));
  }
  if (answered) return exitCodes.ok;
  return interrupted ? exitCodes.interrupted : exitCodes.error;
}
