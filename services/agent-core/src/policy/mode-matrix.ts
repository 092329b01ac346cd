// The default decision for each mode and risk. Pure.
import type { PermissionMode, ToolRisk } from "@parley/contracts";

type Row = Readonly<Record<ToolRisk, "allow" | "ask">>;

const careful: Row = { none: "allow", low: "allow", medium: "ask", high: "ask", critical: "ask" };
const everything: Row = { none: "allow", low: "allow", medium: "allow", high: "allow", critical: "allow" };

/** The restrictions of plan and delegate are applied before; `dont_ask` later turns `ask` into a denial. */
const matrix: Readonly<Record<PermissionMode, Row>> = {
  default: careful,
  accept_edits: { ...careful, medium: "allow" },
  plan: careful,
  dont_ask: careful,
  bypass: everything,
  delegate: everything,
};

export function modeVerdict(mode: PermissionMode, risk: ToolRisk): "allow" | "ask" {
  return matrix[mode][risk];
}
