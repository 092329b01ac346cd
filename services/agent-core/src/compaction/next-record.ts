// The record a carried out plan leaves behind; pure.
import type { ViewRecord } from "@parley/contracts";
import { clip } from "./clip.ts";
import type { Plan } from "./plan-types.ts";
import { withoutMarkers } from "./view-messages.ts";

/**
 * The record after `record`. `summary` is what was written for a plan that summarises, cut to the room the plan has for it; null
 * (another strategy, or nothing could be written) leaves the summary as it was. `atSeq`: the log's last position when the record
 * comes into force, later than the plan's where the summary was written in the background. `tainted`: the model was shown tainted
 * content until now; a record never loses that, for what it shows and what was written under it is derived from all of it. Null: the plan is for another record.
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
    summary: summarized ? clip(withoutMarkers(summary), plan.maxSummaryChars) : (record?.summary ?? null),
    lastRequest: plan.lastRequest,
    clearedBefore: plan.clearedBefore,
    ...(plan.maxResultChars === undefined ? {} : { maxResultChars: plan.maxResultChars }),
    madeAtSeq: Math.max(plan.atSeq, atSeq) + 1,
    ...(tainted || record?.tainted === true ? { tainted: true } : {}),
    trigger: plan.trigger,
    strategy: plan.strategy === "summarize" && !summarized ? "trim" : plan.strategy,
  };
}
