// The text that asks a person to approve a call, and the rules that "always" would add. Pure.
import type { ClaimedTurn } from "@parley/contracts";
import type { ParsedCall } from "../policy/parsed-call.ts";
import { rulesForAlways, rulesForTaintedAlways } from "../policy/session-rules.ts";

/** The call is in a code fence, so that no channel interprets it as markup. */
export function questionText(question: {
  id: string;
  tool: string;
  summary: string;
  reason: string;
  expiresInMs: number;
  always: AlwaysRules | null;
}): string {
  const { id, tool, summary, reason, expiresInMs, always } = question;
  const minutes = Math.max(1, Math.round(expiresInMs / 60_000));
  const longest = Math.max(2, ...[...summary.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = "`".repeat(longest + 1);
  return [
    `May I use ${tool}?`,
    `${fence}\n${summary}\n${fence}`,
    reason,
    `Answer with /approve ${id}${always === null ? "" : ` (or /approve ${id} always)`}, or /deny ${id}. Without an answer in ${minutes} min it is denied.`,
    ...(always === null ? [] : [alwaysText(id, always)]),
  ].join("\n");
}

export interface AlwaysRules {
  list: "allow" | "allowTainted";
  rules: string[];
}

/** The rules that "always" adds to the session; null when an approval can apply to this one call only. */
export function alwaysRules(
  { root }: Pick<ClaimedTurn, "root">,
  call: ParsedCall,
  tainted: boolean,
): AlwaysRules | null {
  // Each delivery of a webhook is different input; the operator allows calls in the settings of the webhook.
  if (root.trust === "webhook") return null;
  const exact = tainted ? rulesForTaintedAlways(call) : [];
  if (exact.length > 0) return { list: "allowTainted", rules: exact };
  const rules = rulesForAlways(call);
  return rules.length === 0 ? null : { list: "allow", rules };
}

/** Longer rules would repeat the call shown above. */
const maxShownRules = 300;

function alwaysText(id: string, { list, rules }: AlwaysRules): string {
  const shown = rules.join(", ");
  const what = shown.length > maxShownRules ? "exactly this call" : shown;
  const where = list === "allow" ? "in turns of this session without untrusted content" : "in this session";
  return `/approve ${id} always also allows ${where}: ${what}`;
}
