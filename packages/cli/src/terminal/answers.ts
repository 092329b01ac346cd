// What a typed text answers: an open approval, an open question of the agent, or nothing. Pure.

import type { QueueMode } from "@parley/contracts";

import type { OpenQuestion } from "./state.ts";

export type TypedAnswer =
  /** A command that decides an approval; an event reports its effect, except that of `always`. */
  | { readonly kind: "decision"; readonly command: string; readonly isReported: boolean }
  /** The text answers the question of this call. */
  | { readonly kind: "answer"; readonly callId: string }
  | { readonly kind: "message" };

const words: Readonly<Record<string, "allow" | "always" | "deny">> = {
  y: "allow",
  yes: "allow",
  a: "always",
  always: "always",
  n: "deny",
  no: "deny",
};

/** `first`: the oldest open question. */
export function answerIn(typed: string, first: OpenQuestion | undefined): TypedAnswer {
  const text = typed.trim();
  if (first === undefined || text.startsWith("/")) return { kind: "message" };
  if (first.kind === "question") return { kind: "answer", callId: first.callId };
  const { approvalId } = first;
  const [, denial, reason] = /^(no?)[\s,:]+(\S.*)$/is.exec(text) ?? [];
  if (denial !== undefined && reason !== undefined)
    return { kind: "decision", command: `/deny ${approvalId} ${reason}`, isReported: true };
  const key = text.toLowerCase();
  const word = Object.hasOwn(words, key) ? words[key] : undefined;
  if (word === undefined) return { kind: "message" };
  if (word === "deny") return { kind: "decision", command: `/deny ${approvalId}`, isReported: true };
  const isAlways = word === "always";
  return { kind: "decision", command: `/approve ${approvalId}${isAlways ? " always" : ""}`, isReported: !isAlways };
}

/** An event reports the effect of this typed command as well: a plain decision of an open approval, or a stop of a running turn. */
export function isReportedByEvents(command: string, open: readonly OpenQuestion[], isAnswering: boolean): boolean {
  const text = command.trim();
  if (/^\/stop$/i.test(text)) return isAnswering;
  const named = /^\/(?:approve\s+(\S+)|deny\s+(\S+)(?:\s.*)?)$/is.exec(text);
  const id = (named?.[1] ?? named?.[2])?.toUpperCase();
  return open.some((each) => each.kind === "approval" && each.approvalId === id);
}

/** Answers to what the chat itself asks, in lower case. */
export const isYes = (word: string): boolean => word === "y" || word === "yes";
export const isNo = (word: string): boolean => word === "n" || word === "no";

/** The command that previews what this typed command would do to files; null: it rewinds nothing, or is the preview itself. */
export function rewindPreview(command: string): string | null {
  const isRewind = /^\/(?:checkpoint\s+)?rewind\s+\S+$/i.test(command.trim());
  return isRewind ? `${command.trim()} --dry-run` : null;
}

/** The line that says how to answer. */
export function answerHint(first: OpenQuestion, others: number): string {
  const more = others === 0 ? "" : `  (${others} more)`;
  if (first.kind === "question") {
    const how = first.options.length === 0 ? "type your answer" : "type a number, or your own answer";
    return `answer: ${how}${more}`;
  }
  const always = first.mayAlways ? " · a always" : "";
  return `${first.tool}: y approve${always} · n [reason] deny${more}`;
}

const modes: Readonly<Record<string, QueueMode>> = { steer: "steer", later: "queue", now: "interrupt" };

/** The text after `/steer`, `/later` or `/now`, and how it is queued; undefined for another text. */
export function queueCommand(typed: string): { mode: QueueMode | undefined; text: string } {
  const [, name = "", text = ""] = /^\/(steer|later|now)\s+(\S[\s\S]*)$/i.exec(typed.trim()) ?? [];
  return text === "" ? { mode: undefined, text: typed } : { mode: modes[name.toLowerCase()], text };
}

/** Text that was typed before the chat took over the terminal arrives when it starts. */
const typedAheadMs = 2_000;

/** A line feed that was Enter: the terminal converts it until the chat has taken over. Later it is Ctrl-J, a new line. */
export function isTypedAheadEnter(data: string, sinceStartMs: number): boolean {
  return data === "\n" && sinceStartMs < typedAheadMs;
}
