// Waits for the MCP servers of a cluster: a turn that starts before a server is ready does not have its tools.
import { operations } from "@parley/contracts";
import type { ApiClient } from "./client.ts";
import { pollUntil } from "./until.ts";

/** Resolves when each of `runners` tool-runners has connected to the named servers. */
export async function untilServersReady(client: ApiClient, names: readonly string[], runners = 1): Promise<void> {
  const isReady = (statuses: string, name: string) => new RegExp(`(^|[,;] )${name}: ready`).test(statuses);
  await pollUntil(
    async () => {
      const response = await client.fetch("/api/status");
      const { replicas } = operations.clusterStatus.output.parse(await response.json());
      const reports = replicas.filter(({ service }) => service === "tool-runner");
      const ready = reports.filter(({ details }) => names.every((name) => isReady(String(details["mcp"]), name)));
      return ready.length >= runners;
    },
    `the MCP servers ${names.join(", ")}`,
  );
}
