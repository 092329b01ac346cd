// Formats sessions, their messages, queues, checkpoints, approvals and cost for people. Pure.

import { previewedOutcomes } from "@parley/contracts";
import type { Cost, Message, RewindReport, SessionSummary, store } from "@parley/contracts";
import { pluralize } from "@parley/kit";

import type { Answer, api } from "../cluster/api.ts";
import type { Paint } from "../io/io.ts";
import { listing, localTime, oneLine, summarizeInput, stripControl } from "./format.ts";

type Row<R extends keyof typeof api, K extends keyof Answer<(typeof api)[R]>> = Answer<
  (typeof api)[R]
>[K] extends readonly (infer T)[]
  ? T
  : never;

/** `maxWidth`: columns of the terminal. */
export function sessionsTable(sessions: readonly SessionSummary[], paint: Paint, maxWidth?: number): string {
  if (sessions.length === 0) return "There are no sessions yet.";
  return listing(
    sessions,
    {
      TITLE: ({ title }) => oneLine(title ?? "-", 40),
      KEY: ({ key }) => oneLine(shortKey(key), 48),
      STATE: ({ runningTurnId, queued }) =>
        `${runningTurnId === null ? "idle" : "running"}${queued === 0 ? "" : `, ${queued} queued`}`,
      MESSAGES: ({ messageCount }) => messageCount,
      TOKENS: ({ usage }) => usage.inputTokens + usage.outputTokens,
      "LAST USED": ({ updatedAt }) => localTime(updatedAt),
      ID: ({ sessionId }) => sessionId,
    },
    paint,
    maxWidth,
  );
}

/** Where messages contain the words of a search; empty without a match. */
export function matchesText(matches: readonly store.SessionMatch[], paint: Paint): string {
  const lines = matches.map(({ sessionId, seq, excerpt }) => {
    const place = paint("dim", `${sessionId} message ${seq}`);
    return `${place}\n  ${oneLine(stripControl(excerpt), 200)}`;
  });
  return lines.length === 0 ? "" : `\n\n${lines.join("\n")}`;
}

/** A key without the id that a session which a conversation has left bears in it; the table lists the id too. */
function shortKey(key: string): string {
  return key.replace(/~[0-9a-f]{8}-[0-9a-f-]{27}$/, " (earlier)");
}

/** One message as lines; empty if it has no visible content. */
export function messageText(message: Message, paint: Paint): string {
  const { from } = message;
  const sender = from === undefined ? "note" : from.origin === "user" ? "person" : from.origin;
  const who = { user: paint("cyan", sender), assistant: paint("green", "agent"), tool: paint("dim", "tools") };
  const lines = message.parts.flatMap((part): string[] => {
    switch (part.type) {
      case "text":
        return [stripControl(part.text)];
      case "quote":
        return [paint("dim", `> ${oneLine(stripControl(part.text), 160)}`)];
      case "reasoning":
        return part.text === "" ? [] : [paint("dim", stripControl(part.text))];
      case "tool_call":
        return [paint("dim", `→ ${part.name} ${oneLine(summarizeInput(part.input), 160)}`)];
      case "tool_result":
        return [`${part.isError ? paint("red", "✗") : paint("green", "✓")} ${part.name}`, stripControl(part.content)];
      case "binary":
        return [`[${part.name ?? part.mediaType}]`];
      case "blob":
        return [`[${part.name}]`];
      case "finish":
        return part.reason === "cancelled" ? [paint("yellow", "(stopped)")] : [];
      case "provider":
        return [];
      default:
        return part satisfies never;
    }
  });
  if (lines.length === 0) return "";
  return `${who[message.role]} ${paint("dim", localTime(message.createdAt))}\n${lines.join("\n")}\n`;
}

/** The overrides of one session. */
export function overridesText({ overrides, key, title }: SessionSummary): string {
  const lines = Object.entries<unknown>(overrides).map(
    ([name, value]) => `  ${name}: ${Array.isArray(value) ? value.join(", ") : String(value)}`,
  );
  const named = `${oneLine(key, 60)}${title === null ? "" : ` "${oneLine(title, 60)}"`}`;
  return lines.length === 0
    ? `${named}: no overrides; the settings apply`
    : [`${named}:`, ...lines.map(stripControl)].join("\n");
}

export function queueTable(rows: readonly Row<"queue", "rows">[], more: boolean, paint: Paint): string {
  if (rows.length === 0) return "No messages are queued.";
  const columns = {
    ID: ({ inboxId }: Row<"queue", "rows">) => inboxId,
    MODE: ({ mode }: Row<"queue", "rows">) => mode,
    FROM: ({ from }: Row<"queue", "rows">) =>
      oneLine(from.origin === "user" ? (from.contact.name ?? from.contact.id) : from.origin, 24),
    SINCE: ({ receivedAt }: Row<"queue", "rows">) => localTime(receivedAt),
    TEXT: ({ text }: Row<"queue", "rows">) => oneLine(text, 60),
  };
  return listing(rows, columns, paint) + (more ? "\n…" : "");
}

export function rulesTable(rules: Answer<typeof api.rules>, paint: Paint): string {
  const rows = Object.entries(rules).flatMap(([origin, lists]) =>
    Object.entries(lists).flatMap(([list, texts]) => texts.map((rule) => ({ origin, list, rule }))),
  );
  if (rows.length === 0) return "There are no permission rules.";
  return listing(
    rows,
    { LIST: ({ list }) => list, OF: ({ origin }) => origin, RULE: ({ rule }) => oneLine(rule, 120) },
    paint,
  );
}

export function approvalsTable(rows: readonly Row<"approvals", "approvals">[], paint: Paint): string {
  if (rows.length === 0) return "No approvals are pending.";
  return listing(
    rows,
    {
      ID: ({ id }) => id,
      STATE: ({ state }) => state,
      TOOL: ({ tool }) => tool,
      "EXPIRES / DECIDED BY": ({ state, expiresAt, decidedBy }) =>
        state === "pending" ? localTime(expiresAt) : oneLine(decidedBy ?? "-", 30),
      CALL: ({ summary }) => oneLine(summary, 60),
      REASON: ({ reason }) => oneLine(reason, 40),
    },
    paint,
  );
}

/** The cost in US dollars, and the number of calls of unknown price. */
export function costText({ micros, unpricedCalls }: Cost): string {
  const dollars = `$${(micros / 1_000_000).toFixed(4)}`;
  if (unpricedCalls === 0) return dollars;
  return `${micros === 0 ? "" : `${dollars} and `}${pluralize(unpricedCalls, "call")} of unknown price`;
}

export function totalCost(rows: readonly { readonly cost: Cost }[]): Cost {
  return {
    micros: rows.reduce((sum, { cost }) => sum + cost.micros, 0),
    unpricedCalls: rows.reduce((sum, { cost }) => sum + cost.unpricedCalls, 0),
  };
}

export function usageTable(rows: readonly Row<"usage", "rows">[], paint: Paint): string {
  if (rows.length === 0) return "There were no model calls in this period.";
  const columns = {
    "DAY (UTC)": ({ day }: Row<"usage", "rows">) => day,
    MODEL: ({ model }: Row<"usage", "rows">) => model,
    CALLS: ({ calls }: Row<"usage", "rows">) => calls,
    INPUT: ({ usage }: Row<"usage", "rows">) => usage.inputTokens,
    OUTPUT: ({ usage }: Row<"usage", "rows">) => usage.outputTokens,
    "CACHE READ": ({ usage }: Row<"usage", "rows">) => usage.cacheReadTokens,
    COST: ({ cost }: Row<"usage", "rows">) => costText(cost),
  };
  return `${listing(rows, columns, paint)}\n\ntotal ${costText(totalCost(rows))}`;
}

export function checkpointsTable(rows: readonly Row<"checkpoints", "checkpoints">[], paint: Paint): string {
  if (rows.length === 0) return "No turn of this session has changed files.";
  return listing(
    rows,
    {
      ID: ({ checkpointId }) => checkpointId,
      AT: ({ at }) => localTime(at),
      FILES: ({ files }) => files,
      BEFORE: ({ kind, text }) => (kind === "rewind" ? "a rewind" : oneLine(text, 60)),
    },
    paint,
  );
}

export function rewindText({ counts, files, omitted, checkpointId }: RewindReport, paint: Paint): string {
  const numbers = (["restored", "removed", "skipped", "failed"] as const).map((each) => `${counts[each]} ${each}`);
  const lines = files.map(({ path, outcome, reason }) => {
    const what = checkpointId === null ? previewedOutcomes[outcome] : outcome;
    const mark = outcome === "failed" ? paint("red", what) : what;
    return `${mark}  ${oneLine(path, 200)}${reason === null ? "" : `  (${oneLine(reason, 160)})`}`;
  });
  const more = omitted === 0 ? [] : [`… and ${omitted} more`];
  const undo = checkpointId === null ? [] : [`parley rewind ${checkpointId} undoes it.`];
  const head = `${checkpointId === null ? "This would happen" : "Done"}: ${numbers.join(", ")}.`;
  return [head, ...lines, ...more, ...undo].join("\n");
}

export function compactText(compacted: Answer<typeof api.compact>): string {
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
