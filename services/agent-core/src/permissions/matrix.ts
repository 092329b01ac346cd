// What a mode says to a risk, when nothing more particular has been said. Pure.
import type { PermissionMode, ToolRisk } from "@parley/contracts";

type Row = Readonly<Record<ToolRisk, "allow" | "ask">>;

const careful: Row = { none: "allow", low: "allow", medium: "ask", high: "ask", critical: "ask" };
const everything: Row = { none: "allow", low: "allow", medium: "allow", high: "allow", critical: "allow" };

/** What plan and delegate let through is decided before; `dont_ask` turns what is asked here into a no. */
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
