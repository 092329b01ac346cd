// The record a carried out plan leaves behind; pure.
import type { ViewRecord } from "@parley/contracts";
import { clip } from "./clip.ts";
import type { Plan } from "./plan-types.ts";
import { withoutMarkers } from "./view-messages.ts";

/**
 * The record after `record`. `summary` is what was written for a plan that summarises, cut to the room the plan has for it; null
 * (another strategy, or nothing could be written) leaves the summary as it was. `atSeq`: the log's last position when the record
 * comes into force, later than the plan's where the summary was written in the background. Null: the plan is for another record.
 */
export function nextRecord(
  record: ViewRecord | null,
  plan: Plan,
  summary: string | null,
  atSeq = plan.atSeq,
): ViewRecord | null {
  if (plan.baseVersion !== (record?.version ?? 0)) return null;
  const summarized = plan.strategy === "summarize" && summary !== null;
  return {
    version: plan.baseVersion + 1,
    keepFirstTo: plan.keepFirstTo,
    fromSeq: plan.fromSeq,
    summary: summarized ? clip(withoutMarkers(summary), plan.maxSummaryChars) : (record?.summary ?? null),
    lastRequest: plan.lastRequest,
    clearedBefore: plan.clearedBefore,
    ...(plan.maxResultChars === undefined ? {} : { maxResultChars: plan.maxResultChars }),
    madeAtSeq: Math.max(plan.atSeq, atSeq) + 1,
    trigger: plan.trigger,
    strategy: plan.strategy === "summarize" && !summarized ? "trim" : plan.strategy,
  };
}
