// The states of an MCP server, and what is said of them.
import type { McpServerStatus } from "@parley/contracts";
import type { Connection } from "./connection.ts";

export type State =
  /** `problem`: what ended it before, where it is started again. */
  | { kind: "starting"; problem?: string }
  | { kind: "ready"; connection: Connection }
  | { kind: "restarting" | "broken"; problem: string }
  | { kind: "consent"; link: string }
  /** A person has switched it off. */
  | { kind: "off" }
  | { kind: "closed" };

export function statusOf(server: string, state: State, tools: number): McpServerStatus {
  const known = "problem" in state ? state.problem : undefined;
  const problem = known ?? (state.kind === "consent" ? "a person has to let the agent in" : null);
  return { server, state: state.kind === "closed" ? "off" : state.kind, tools, problem };
}

/** For a call that has waited in vain. */
export function notReadyText(server: string, state: State): string {
  if (state.kind === "off") return switchedOffText(server);
  if (state.kind === "broken") {
    return `The MCP server ${server} does not work, and is tried again only from time to time: ${state.problem}`;
  }
  const known = state.kind === "restarting" ? ` It failed with: ${state.problem}` : "";
  return `The MCP server ${server} is ${state.kind}. Nothing was called; try again in a while.${known}`;
}

export function switchedOffText(server: string): string {
  return `The MCP server ${server} is switched off; nothing was called. Only the owner can switch it on again: /mcp on ${server}.`;
}

export function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
