// The states of an MCP server, and the texts about them.
import type { McpServerStatus } from "@parley/contracts";
import type { Connection } from "./connection.ts";

export type State =
  /** `problem`: why the previous run ended, after a restart. */
  | { kind: "starting"; problem?: string }
  | { kind: "ready"; connection: Connection }
  | { kind: "restarting" | "broken"; problem: string }
  | { kind: "consent"; link: string }
  /** Switched off by a person. */
  | { kind: "off" }
  | { kind: "closed" };

export function statusOf(server: string, state: State, tools: number): McpServerStatus {
  const known = "problem" in state ? state.problem : undefined;
  const problem = known ?? (state.kind === "consent" ? "waiting for a person's consent" : null);
  return { server, state: state.kind === "closed" ? "off" : state.kind, tools, problem };
}

/** The result of a call that waited for the server without success. */
export function notReadyText(server: string, state: State): string {
  if (state.kind === "off") return switchedOffText(server);
  if (state.kind === "broken") {
    return `The MCP server ${server} keeps failing and is restarted only at long intervals: ${state.problem}`;
  }
  const known = state.kind === "restarting" ? ` Its last failure: ${state.problem}` : "";
  return `The MCP server ${server} is ${state.kind}; nothing was called. Try again later.${known}`;
}

export function switchedOffText(server: string): string {
  return `The MCP server ${server} is switched off; nothing was called. Only the owner can switch it on: /mcp on ${server}.`;
}

export function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
