// Formats queues, approvals, cost and checkpoints for people. Pure.

import type { Cost, RewindReport, SessionSummary } from "@parley/contracts";

import type { Paint } from "../io.ts";
import { localTime } from "../sessions/text.ts";
import { stripControl, oneLine, table } from "../text.ts";
import type { ApprovalRow, CheckpointRow, Compacted, QueueRow, UsageRow } from "./api.ts";

function head(names: readonly string[], paint: Paint): string[] {
  return names.map((name) => paint("dim", name));
}

export function queueTable(rows: readonly QueueRow[], more: boolean, paint: Paint): string {
  if (rows.length === 0) return "No messages are queued.";
  const lines = rows.map(({ inboxId, from, mode, receivedAt, text }) => [
    inboxId,
    mode,
    oneLine(from.origin === "user" ? (from.contact.name ?? from.contact.id) : from.origin, 24),
    localTime(receivedAt),
    oneLine(text, 60),
  ]);
  return table([head(["ID", "MODE", "FROM", "SINCE", "TEXT"], paint), ...lines]) + (more ? "\n…" : "");
}

export function approvalsTable(rows: readonly ApprovalRow[], paint: Paint): string {
  if (rows.length === 0) return "No approvals are pending.";
  const lines = rows.map(({ id, state, tool, summary, reason, expiresAt, decidedBy }) => [
    id,
    state,
    tool,
    state === "pending" ? localTime(expiresAt) : oneLine(decidedBy ?? "-", 30),
    oneLine(summary, 60),
    oneLine(reason, 40),
  ]);
  return table([head(["ID", "STATE", "TOOL", "UNTIL / BY", "CALL", "BECAUSE"], paint), ...lines]);
}

/** The cost in US dollars, and the number of calls of unknown price. */
export function costText({ micros, unpricedCalls }: Cost): string {
  const dollars = `$${(micros / 1_000_000).toFixed(4)}`;
  if (unpricedCalls === 0) return dollars;
  return `${micros === 0 ? "" : `${dollars} and `}${unpricedCalls} ${unpricedCalls === 1 ? "call" : "calls"} of unknown price`;
}

export function totalCost(rows: readonly { readonly cost: Cost }[]): Cost {
  return {
    micros: rows.reduce((sum, { cost }) => sum + cost.micros, 0),
    unpricedCalls: rows.reduce((sum, { cost }) => sum + cost.unpricedCalls, 0),
  };
}

export function usageTable(rows: readonly UsageRow[], paint: Paint): string {
  if (rows.length === 0) return "There were no model calls in this period.";
  const lines = rows.map(({ day, model, calls, usage, cost }) => [
    day,
    model,
    String(calls),
    String(usage.inputTokens),
    String(usage.outputTokens),
    String(usage.cacheReadTokens),
    costText(cost),
  ]);
  const names = ["DAY (UTC)", "MODEL", "CALLS", "INPUT", "OUTPUT", "CACHE READ", "COST"];
  return `${table([head(names, paint), ...lines])}\n\ntotal ${costText(totalCost(rows))}`;
}

export function checkpointsTable(rows: readonly CheckpointRow[], paint: Paint): string {
  if (rows.length === 0) return "No turn of this session has changed files.";
  const lines = rows.map(({ checkpointId, kind, at, files, text }) => [
    checkpointId,
    localTime(at),
    String(files),
    kind === "rewind" ? "a rewind" : oneLine(text, 60),
  ]);
  return table([head(["ID", "AT", "FILES", "BEFORE"], paint), ...lines]);
}

export function rewindText({ counts, files, omitted, checkpointId }: RewindReport, paint: Paint): string {
  const numbers = (["restored", "removed", "skipped", "failed"] as const)
    .map((outcome) => `${counts[outcome]} ${outcome}`)
    .join(", ");
  const lines = files.map(({ path, outcome, reason }) => {
    const mark = outcome === "failed" ? paint("red", outcome) : outcome;
    return `${mark}  ${oneLine(path, 200)}${reason === null ? "" : `  (${oneLine(reason, 160)})`}`;
  });
  const more = omitted === 0 ? [] : [`… and ${omitted} more`];
  const undo = checkpointId === null ? [] : [`parley rewind ${checkpointId} undoes it.`];
  return [`${checkpointId === null ? "This would happen" : "Done"}: ${numbers}.`, ...lines, ...more, ...undo].join(
    "\n",
  );
}

export function compactText(compacted: Compacted): string {
  switch (compacted.outcome) {
    case "compacted": {
      const { tokensBefore, tokensAfter, notice } = compacted;
      return `Compacted: from about ${tokensBefore} to ${tokensAfter} tokens.${notice === null ? "" : ` ${stripControl(notice)}`}`;
    }
    case "nothing":
      return "There is nothing to compact.";
    case "busy_later":
      return "A turn is running; the compaction follows when it ends.";
    default:
      return compacted satisfies never;
  }
}

/** The overrides of one session. */
export function overridesText({ overrides, key, title }: SessionSummary): string {
  const lines = Object.entries(overrides).map(
    ([name, value]) => `  ${name}: ${Array.isArray(value) ? value.join(", ") : String(value)}`,
  );
  const named = `${oneLine(key, 60)}${title === null ? "" : ` "${oneLine(title, 60)}"`}`;
  return lines.length === 0
    ? `${named}: no overrides; the settings apply`
    : [`${named}:`, ...lines.map(stripControl)].join("\n");
}
