// What the health report and the log state about this replica's isolation, workspace and MCP servers.
import { statfs } from "node:fs/promises";
import type { Logger, ServiceMetrics } from "@parley/chassis";
import type { McpServerStatus } from "@parley/contracts";
import type { Executor } from "./sandbox/executor.ts";
import { hideProcess } from "./sandbox/hide-process.ts";
import { describeIsolation, hasInternet, type Isolation } from "./sandbox/isolation.ts";
import type { Workspace } from "./workspace/workspace.ts";

interface Reported {
  executor: Pick<Executor, "isolation" | "limitedBy">;
  workspace: Workspace;
  /** Undefined when no MCP server is configured. */
  mcp: readonly McpServerStatus[] | undefined;
}

export function healthDetails({ executor: { isolation, limitedBy }, workspace, mcp }: Reported) {
  return {
    isolation: describeIsolation(isolation),
    ...(hasInternet(isolation) ? { commandsReachInternet: true } : {}),
    limits: limitedBy,
    workspace: workspace.root,
    ...quotaDetail(workspace),
    ...mcpDetail(mcp),
  };
}

/**
 * Hides the process where commands are in its container and could read its NATS login and the tools' secrets under /proc. Logs a warning
 * when that is impossible.
 */
export function hideFromCommands(log: Logger, { kind }: Isolation): void {
  if (kind !== "container" && kind !== "gvisor") return;
  if (!hideProcess()) log.warn({ isolation: kind }, "process not hidden: commands can read its NATS login and secrets");
}

/** Logs a warning when commands are refused or less isolated than in the sandbox. */
export function warnAboutIsolation(log: Logger, isolation: Isolation): void {
  if (isolation.kind === "refused") log.warn({ reason: isolation.reason }, "exec disabled: no sandbox is available");
  if (hasInternet(isolation)) {
    log.warn(
      { isolation: isolation.kind },
      "commands not isolated from the internet: they share the tool-runner's network",
    );
  }
  if (isolation.kind === "none") log.warn("command isolation disabled by the configuration");
}

/** The usage and limit of the workspace, in bytes. */
function quotaDetail({ quota }: Workspace): Record<string, number> {
  const { usedBytes, rules } = quota;
  return {
    ...(usedBytes === null ? {} : { workspaceBytes: usedBytes }),
    ...(rules.maxBytes === 0 ? {} : { workspaceMaxBytes: rules.maxBytes }),
  };
}

/** A summary of the MCP servers, and how many of them are unusable. */
function mcpDetail(statuses: readonly McpServerStatus[] | undefined): { mcp?: string; mcpDown?: number } {
  if (statuses === undefined) return {};
  const words = statuses.map(
    ({ server, state, tools, problem }) =>
      `${server}: ${state}, ${tools} tools${problem === null ? "" : ` (${problem})`}`,
  );
  const down = statuses.filter(({ state, problem }) => problem !== null && state !== "ready");
  return { mcp: words.join("; "), mcpDown: down.length };
}

/** Exports the size of the workspace and the free space of its disk. */
export function exportWorkspace(metrics: ServiceMetrics, { root, quota }: Pick<Workspace, "root" | "quota">): void {
  metrics.set("parley_workspace_limit_bytes", quota.rules.maxBytes);
  metrics.collect("parley_workspace_bytes", () => {
    if (quota.usedBytes !== null) metrics.set("parley_workspace_bytes", quota.usedBytes);
  });
  metrics.collect("parley_workspace_disk_free_bytes", async () => {
    const { bavail, bsize } = await statfs(root);
    metrics.set("parley_workspace_disk_free_bytes", bavail * bsize);
  });
}
