// Assesses the risk and effects of one call from the tool's descriptor, its sandbox and the call's arguments. Pure.
import type { ToolEffect, ToolRisk } from "@parley/contracts";
import { hasUnmatchedRecipient, type ParsedCall } from "./parsed-call.ts";
import { startsPrograms } from "./program-files.ts";
import { onlyReads } from "./shell.ts";
import { traitsOf, messagesPeople, startsSubagents } from "./tool-traits.ts";
import { reachesWeb } from "./web-access.ts";

export interface RiskAssessment {
  risk: ToolRisk;
  effects: readonly ToolEffect[];
  /** The call only reads, or only answers the person it works for; plan mode allows it. */
  changesNothing: boolean;
}

const order: readonly ToolRisk[] = ["none", "low", "medium", "high", "critical"];
/** Effects confined to the workspace and the sandbox. */
const local: ReadonlySet<ToolEffect> = new Set(["executes", "reads_files", "writes_files"]);
/** Documents that prompts contain: writing them has effects beyond the conversation. */
const documents = /^(?:SOUL|AGENTS|IDENTITY|USER|TOOLS|MEMORY|HEARTBEAT)\.md$/i;

/**
 * - The base is the descriptor's risk, else the default by name, else high.
 * - Effects within the workspace have low risk: its files can be rewound and are not shared. Execution in a sandbox has low risk too;
 *   without a sandbox the risk is at least high. With `contained` = `ask`, file changes keep the tool's risk; commands have at least
 *   high risk, unless they run in a sandbox and only read; web requests and sub-agents have at least medium risk.
 * - Web requests with a body and messages to other conversations have at least high risk.
 * - Listing jobs, listing processes and reading their output, and answering the turn's own conversation, have no risk.
 * - Writing a file that names programs for other tools to start counts as executing; a web request counts as sending out.
 *
 * `ownAddresses`: values of `to` that mean the call's own conversation.
 */
export function assessRisk(
  call: ParsedCall,
  ownAddresses: readonly string[] = [],
  contained: "allow" | "ask" = "allow",
): RiskAssessment {
  const { tool, input } = call;
  const declared = traitsOf(tool);
  const asks = contained === "ask";
  const leavesSandbox = reachesWeb(tool) || startsSubagents(tool);
  const traits = asks && leavesSandbox ? { ...declared, risk: atLeast(declared.risk, "medium") } : declared;
  const assessed = (risk: ToolRisk, effects: readonly ToolEffect[]): RiskAssessment => ({
    risk,
    effects,
    changesNothing: tool.readOnly || (risk === "none" && effects.length === 0),
  });
  if (onlyInspects(call)) return assessed("none", []);
  if (messagesPeople(tool)) {
    return isOwn(input, ownAddresses)
      ? assessed("none", [])
      : assessed(atLeast(traits.risk, "high"), [...traits.effects, "sends_out"]);
  }
  if (tool.name === "web_fetch" && sendsMore(input)) {
    return { ...assessed(atLeast(traits.risk, "high"), [...traits.effects, "sends_out"]), changesNothing: false };
  }
  const effects = [...traits.effects, ...documentEffects(call, traits.effects)];
  // Older tool-runners do not declare it, but the address or query leaves the deployment.
  if (reachesWeb(tool)) effects.push("sends_out");
  if (tool.name.startsWith("mcp__") || !traits.effects.every((effect) => local.has(effect)))
    return assessed(traits.risk, effects);
  if (traits.effects.includes("executes")) {
    const reads = call.argument.kind === "command" && onlyReads(call.argument.parsed);
    const isLow = (!asks || reads) && tool.contained === true && traits.risk !== "critical";
    const risk = isLow ? "low" : atLeast(traits.risk, "high");
    return assessed(risk, effects);
  }
  const onlyFiles = !asks && traits.effects.length > 0 && traits.risk === "medium";
  return assessed(onlyFiles ? "low" : traits.risk, effects);
}

function atLeast(risk: ToolRisk, least: ToolRisk): ToolRisk {
  return order.indexOf(risk) < order.indexOf(least) ? least : risk;
}

function onlyInspects({ tool, input }: ParsedCall): boolean {
  if (tool.name === "process") return ["list", "status", "poll", "log"].includes(String(input["action"]));
  return tool.name === "cron" && input["action"] === "list";
}

/** Whether the message goes to the turn's own conversation, which is the default without an address. */
function isOwn(input: ParsedCall["input"], ownAddresses: readonly string[]): boolean {
  const { to } = input;
  if (hasUnmatchedRecipient(input)) return false;
  return to === undefined || (typeof to === "string" && ownAddresses.includes(to));
}

function sendsMore(input: ParsedCall["input"]): boolean {
  const method = input["method"];
  const reads = method === undefined || (typeof method === "string" && /^(?:get|head)$/i.test(method));
  return !reads || (input["body"] !== undefined && input["body"] !== null);
}

function documentEffects({ argument }: ParsedCall, effects: readonly ToolEffect[]): ToolEffect[] {
  if (argument.kind !== "paths" || !effects.includes("writes_files")) return [];
  const found = new Set<ToolEffect>();
  for (const { names } of argument.paths) {
    const [first = "", ...below] = names ?? [];
    const isDocument = below.length === 0 && documents.test(first);
    if (isDocument || /^(?:memory|skills)$/i.test(first)) found.add("writes_memory");
    if (isDocument && /^heartbeat/i.test(first)) found.add("schedules");
    if (startsPrograms(names ?? [])) found.add("executes");
  }
  return [...found];
}
