// Formats sessions and their messages for people. Pure.

import type { Message, SessionSummary } from "@parley/contracts";

import type { Paint } from "../io.ts";
import { shortInput } from "../chat/renderer.ts";
import { stripControl, oneLine, table } from "../text.ts";

export function sessionsTable(sessions: readonly SessionSummary[], paint: Paint): string {
  if (sessions.length === 0) return "There are no sessions yet.";
  const head = ["KEY", "STATE", "MESSAGES", "TOKENS", "LAST USED", "ID"].map((cell) => paint("dim", cell));
  const rows = sessions.map((session) => [
    oneLine(session.key, 48),
    stateOf(session),
    String(session.messageCount),
    String(session.usage.inputTokens + session.usage.outputTokens),
    localTime(session.updatedAt),
    session.sessionId,
  ]);
  return table([head, ...rows]);
}

function stateOf({ runningTurnId, queued }: SessionSummary): string {
  const waiting = queued === 0 ? "" : `, ${queued} waiting`;
  return `${runningTurnId === null ? "idle" : "thinking"}${waiting}`;
}

/** One message as lines; empty if it has no visible content. */
export function messageText(message: Message, paint: Paint): string {
  const lines: string[] = [];
  const who = { user: paint("cyan", "person"), assistant: paint("green", "agent"), tool: paint("dim", "tools") };
  for (const part of message.parts) {
    switch (part.type) {
      case "text":
        lines.push(stripControl(part.text));
        break;
      case "reasoning":
        if (part.text !== "") lines.push(paint("dim", stripControl(part.text)));
        break;
      case "tool_call":
        lines.push(paint("dim", `→ ${part.name} ${oneLine(shortInput(part.input), 160)}`));
        break;
      case "tool_result":
        lines.push(
          `${part.isError ? paint("red", "✗") : paint("green", "✓")} ${part.name}`,
          stripControl(part.content),
        );
        break;
      case "binary":
        lines.push(`[${part.name ?? part.mediaType}]`);
        break;
      case "blob":
        lines.push(`[${part.name}]`);
        break;
      case "finish":
        if (part.reason === "cancelled") lines.push(paint("yellow", "(stopped)"));
        break;
      case "provider":
        break;
      default:
        part satisfies never;
    }
  }
  if (lines.length === 0) return "";
  return `${who[message.role]} ${paint("dim", localTime(message.createdAt))}\n${lines.join("\n")}\n`;
}

/** `2026-11-21 22:14:05` in the local time zone. */
export function localTime(iso: string): string {
  const date = new Date(iso);
  if (Number.isNaN(date.getTime())) return iso;
  const two = (value: number): string => String(value).padStart(2, "0");
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}
