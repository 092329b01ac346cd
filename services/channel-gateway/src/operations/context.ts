// /compact and /cost: compact the conversation for the model, and report the cost of model calls.
import { setTimeout as delay } from "node:timers/promises";
import { store, type Cost } from "@parley/contracts";
import { costText, count, pluralize, tokensText } from "./format.ts";
import { currentSession, type Command, type Invocation } from "./hand-written.ts";
import { UsageError } from "./operation.ts";

const dayMs = 86_400_000;
const maxDays = 90;
/** A running command delays the sender's next message, so it waits no longer than this. */
const patienceMs = 8_000;

function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

function sum(costs: readonly Cost[]): Cost {
  return {
    micros: costs.reduce((total, { micros }) => total + micros, 0),
    unpricedCalls: costs.reduce((total, { unpricedCalls }) => total + unpricedCalls, 0),
  };
}

async function since({ deps }: Invocation, days: number): Promise<string> {
  const { rows } = await deps.bus.request(store.usageReport, { sinceDay: dayOf(Date.now() - (days - 1) * dayMs) });
  const span = days === 1 ? "Today (UTC)" : `The last ${days} days (UTC)`;
  if (rows.length === 0) return `${span}: no model calls.`;
  const lines = rows.map(
    ({ day, model, calls, cost }) =>
      `${days === 1 ? "" : `${day}  `}${model}: ${pluralize(calls, "call")}, ${costText(cost)}`,
  );
  return [`${span}: ${costText(sum(rows.map(({ cost }) => cost)))}`, ...lines].join("\n");
}

async function ofSession(invocation: Invocation): Promise<string> {
  const { cost, usage } = await currentSession(invocation);
  return `This session: ${costText(cost)}; ${tokensText(usage)}.`;
}

export const contextCommands: readonly Command[] = [
  {
    name: "/compact",
    usage: "/compact [what to keep]",
    summary: "compact the conversation for the model: a summary replaces older messages",
    async run(invocation) {
      const { deps, argumentText } = invocation;
      const { sessionId } = await currentSession(invocation);
      const work = deps.acts.compact(sessionId, argumentText === "" ? undefined : argumentText);
      const done = await Promise.race([work, delay(patienceMs, { outcome: "at_it" as const }, { ref: false })]);
      // After the "in progress" answer no failure is reported.
      work.catch(() => undefined);
      switch (done.outcome) {
        case "at_it":
          return "Compaction is in progress; it may take several minutes.";
        case "compacted": {
          const sizes = `Compacted: from about ${count(done.tokensBefore)} to about ${count(done.tokensAfter)} tokens.`;
          return done.notice === null ? sizes : `${sizes} ${done.notice}`;
        }
        case "nothing":
          return "There is nothing to compact.";
        default:
          return "A turn is running. The conversation is compacted when it ends.";
      }
    },
  },
  {
    name: "/cost",
    usage: "/cost [session | today | days <n>]",
    summary: "show the cost of model calls",
    async run(invocation) {
      const [what, number] = invocation.words;
      switch (what?.toLowerCase()) {
        case undefined: {
          const session = await invocation.deps.sessions.find(invocation.speaker.route);
          const parts = [...(session === null ? [] : [await ofSession(invocation)]), await since(invocation, 1)];
          return parts.join("\n");
        }
        case "session":
          return ofSession(invocation);
        case "today":
          return since(invocation, 1);
        case "days": {
          const days = Number(number ?? 7);
          if (!Number.isInteger(days) || days < 1 || days > maxDays) {
            throw new UsageError(`The number of days must be from 1 to ${maxDays}.`);
          }
          return since(invocation, days);
        }
        default:
          throw new UsageError(`Unknown subcommand: /cost ${invocation.argumentText}.`);
      }
    },
  },
];
