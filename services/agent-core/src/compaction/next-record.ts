// Builds the view record that results from a compaction plan; pure.
import type { ViewRecord } from "@parley/contracts";
import { elideMiddle } from "@parley/kit";
import type { Plan } from "./plan-types.ts";
import { withoutMarkers } from "./view-messages.ts";

/**
 * The record that follows `record`; null if the plan is for another record. `summary`: the new summary, truncated to the plan's limit;
 * null (another strategy, or summarization failed) keeps the previous summary. `atSeq`: the log's last position when the record takes
 * effect, later than the plan's if the summary was written in the background. `tainted`: the view contained tainted content. A record
 * never loses this mark, since everything in and after it is derived from that view.
 */
export function nextRecord(
  record: ViewRecord | null,
  plan: Plan,
  summary: string | null,
  { atSeq = plan.atSeq, tainted = false }: { atSeq?: number; tainted?: boolean } = {},
): ViewRecord | null {
  if (plan.baseVersion !== (record?.version ?? 0)) return null;
  const summarized = plan.strategy === "summarize" && summary !== null;
  return {
    version: plan.baseVersion + 1,
    keepFirstTo: plan.keepFirstTo,
    fromSeq: plan.fromSeq,
    summary: summarized ? elideMiddle(withoutMarkers(summary), plan.maxSummaryChars) : (record?.summary ?? null),
    lastRequest: plan.lastRequest,
    clearedBefore: plan.clearedBefore,
    ...(plan.maxResultChars === undefined ? {} : { maxResultChars: plan.maxResultChars }),
    madeAtSeq: Math.max(plan.atSeq, atSeq) + 1,
    ...(tainted || record?.tainted === true ? { tainted: true } : {}),
    trigger: plan.trigger,
    strategy: plan.strategy === "summarize" && !summarized ? "trim" : plan.strategy,
  };
}
