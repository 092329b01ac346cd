// Runs all independent checks in parallel. A check that throws becomes a finding.

import { errorMessage } from "@parley/contracts";
import { clusterChecks } from "./cluster.ts";
import type { Check, DoctorContext } from "./context.ts";
import { error, type Finding } from "./finding.ts";
import { machineChecks } from "./machine.ts";
import { serverChecks } from "./servers.ts";

const allChecks: readonly Check[] = [...machineChecks, ...serverChecks, ...clusterChecks];

export async function runChecks(context: DoctorContext, checks: readonly Check[] = allChecks): Promise<Finding[]> {
  const found = await Promise.all(
    checks.map(async ({ id, run }) => {
      try {
        return await run(context);
      } catch (failure) {
        return [
          error(id, `the check itself failed: ${errorMessage(failure)}`, `parley doctor --json   shows all findings`),
        ];
      }
    }),
  );
  return found.flat();
}
