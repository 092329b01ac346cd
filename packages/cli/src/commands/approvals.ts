// `parley approvals`: lists pending approvals, and approves or denies them.

import type { ControlApi } from "../control/api.ts";
import { asking, type Shown } from "../control/call.ts";
import { approvalsTable } from "../control/text.ts";
import { UsageError } from "../errors.ts";
import { exitCodes } from "../exit-codes.ts";
import { oneLine } from "../text.ts";

export const run = asking(async (api, { values }) => {
  const approve = values.text("approve");
  const deny = values.text("deny");
  if (approve !== undefined && deny !== undefined) throw new UsageError("Use either --approve or --deny, not both.");
  if (values.has("always") && approve === undefined) throw new UsageError("--always needs --approve.");
  if (approve !== undefined) return decide(api, approve, true, values.has("always"));
  if (deny !== undefined) return decide(api, deny, false, false);
  const found = await api.approvals({ state: values.has("all") ? "all" : "pending", session: values.text("session") });
  return { data: found, text: (paint) => approvalsTable(found.approvals, paint) };
});

async function decide(api: ControlApi, id: string, allow: boolean, always: boolean): Promise<Shown> {
  const decided = await api.decide(id.toUpperCase(), allow, always);
  const { outcome, approval } = decided;
  const what = approval === null ? "" : ` ${approval.tool}: ${oneLine(approval.summary, 120)}`;
  const words = {
    decided: `${allow ? "Allowed" : "Denied"}${always ? ", also for similar calls in this session" : ""}.${what}`,
    already: `It was already ${approval?.state ?? "answered"}.${what}`,
    expired: `It has expired: nobody answered in time, so the call was denied.${what}`,
    not_found: `There is no approval ${id.toUpperCase()}. parley approvals lists the pending ones.`,
  };
  return { data: decided, text: () => words[outcome], code: outcome === "decided" ? exitCodes.ok : exitCodes.error };
}
