// Runs all checks at the same time. None depends on another: one that fails is a finding, and the others go on.

import { messageOf } from "../errors.ts";
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
          error(id, `the check itself failed: ${messageOf(failure)}`, `parley doctor --json   shows all findings`),
        ];
      }
    }),
  );
  return found.flat();
}
