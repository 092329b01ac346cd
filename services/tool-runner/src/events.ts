// Observability of tool calls: one function per event, which updates metrics and writes a log line. They never throw.
import type { ToolCallRequest } from "@parley/contracts";
import type { Chassis } from "@parley/chassis";

export interface Events {
  callEnded: (request: ToolCallRequest, state: string, durationMs: number) => void;
  toolFault: (error: unknown, request: ToolCallRequest) => void;
}

export function createEvents(
  chassis: Pick<Chassis, "log" | "metrics">,
  load: { running: () => number; waiting: () => number },
): Events {
  const { log, metrics } = chassis;
  metrics.collect("parley_tool_calls_running", () => metrics.set("parley_tool_calls_running", load.running()));
  metrics.collect("parley_tool_calls_waiting", () => metrics.set("parley_tool_calls_waiting", load.waiting()));
  return {
    callEnded: (request, state, durationMs) => {
      metrics.count("parley_tool_calls_total", { tool: request.tool, state });
      metrics.observe("parley_tool_call_seconds", durationMs / 1_000);
      const { turnId, n, tool } = request;
      log.debug({ turnId, step: n, tool, state, durationMs: Math.round(durationMs) }, "tool call ended");
    },
    toolFault: (error, request) => {
      metrics.count("parley_tool_faults_total", { tool: request.tool });
      log.error(
        { err: error, turnId: request.turnId, step: request.n, tool: request.tool },
        "tool failed: unexpected exception",
      );
    },
  };
}
