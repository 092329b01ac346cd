// Observability of tool calls: one function per event, which updates metrics and writes a log line. They never throw.
import type { ToolCallRequest } from "@parley/contracts";
import { Counter, Gauge, Histogram, type Chassis } from "@parley/chassis";

export interface Events {
  callEnded: (request: ToolCallRequest, state: string, durationMs: number) => void;
  toolFault: (error: unknown, request: ToolCallRequest) => void;
}

export function createEvents(
  chassis: Pick<Chassis, "log" | "metrics">,
  load: { running: () => number; waiting: () => number },
): Events {
  const { log, metrics } = chassis;
  const registers = [metrics.registry];
  const calls = new Counter({
    name: "parley_tool_calls_total",
    help: "Tool calls by tool and final state",
    labelNames: ["tool", "state"],
    registers,
  });
  const durations = new Histogram({
    name: "parley_tool_call_seconds",
    help: "Duration from the request to the settled result",
    labelNames: ["tool"],
    buckets: [0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 30, 120, 600],
    registers,
  });
  const faults = new Counter({
    name: "parley_tool_faults_total",
    help: "Exceptions thrown by tools",
    labelNames: ["tool"],
    registers,
  });
  for (const [state, count] of Object.entries(load)) {
    const gauge: Gauge = new Gauge({
      name: `parley_tool_calls_${state}`,
      help: `Number of tool calls currently ${state}`,
      registers,
      collect: () => gauge.set(count()),
    });
  }
  return {
    callEnded: (request, state, durationMs) => {
      calls.inc({ tool: request.tool, state });
      durations.observe({ tool: request.tool }, durationMs / 1_000);
      const { turnId, n, tool } = request;
      log.debug({ turnId, n, tool, state, durationMs: Math.round(durationMs) }, "tool call ended");
    },
    toolFault: (error, request) => {
      faults.inc({ tool: request.tool });
      log.error(
        { err: error, turnId: request.turnId, n: request.n, tool: request.tool },
        "tool failed: unexpected exception",
      );
    },
  };
}
