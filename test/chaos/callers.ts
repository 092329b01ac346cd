// Two hundred concurrent callers under every preset with every queue mode. Each combination has its own cluster, whose leader is killed.
import { presetNames, queueModes } from "@parley/contracts";
import { Cleanup, startTestCluster } from "@parley/testing";
import { load } from "../e2e/support/callers.ts";

const callers = 200;

/** Reports each combination; resolves with the failures, one line for each caller. */
export async function runCallers(report: (line: string) => void): Promise<string[]> {
  const problems: string[] = [];
  for (const preset of presetNames) {
    for (const mode of queueModes) {
      await using cleanup = new Cleanup();
      const cluster = await startTestCluster(cleanup, {
        settings: `preset = "${preset}"\n[queue]\nmode = "${mode}"\n`,
        replicas: { "agent-core": 2, "channel-gateway": 2 },
      });
      const begin = performance.now();
      const { wrong, leadersKilled } = await load({ cluster, callers, others: 20 });
      const bad = leadersKilled === 1 ? wrong : [...wrong, "the leader was not killed"];
      problems.push(...bad.map((what) => `${preset} ${mode}: ${what}`));
      report(
        `${preset} ${mode}: ${bad.length === 0 ? "ok" : bad.join("; ")} (${Math.round(performance.now() - begin)} ms)`,
      );
    }
  }
  return problems;
}
