// `parley doctor`: runs all independent checks in parallel. A check that throws becomes a finding.

import { errorMessage } from "@parley/contracts";
import { pluralize } from "@parley/kit";

import { api } from "../cluster/api.ts";
import { Gateway } from "../cluster/gateway.ts";
import { findSettings } from "../cluster/settings.ts";
import { findTarget } from "../cluster/target.ts";
import { exitCodes, painter, print, printJson, type Io, type Paint } from "../io/io.ts";
import type { OptionValues } from "../io/options.ts";
import { clusterChecks } from "./cluster.ts";
import { type Check, type DoctorContext, error, type Finding } from "./finding.ts";
import { machineChecks } from "./machine.ts";
import { modelChecks } from "./model.ts";
import { scheduleChecks } from "./schedules.ts";
import { serverChecks } from "./servers.ts";

const allChecks: readonly Check[] = [
  ...machineChecks,
  ...serverChecks,
  ...clusterChecks,
  ...modelChecks,
  ...scheduleChecks,
];

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

/** `parley doctor`. Returns the exit code. */
export async function doctor(values: OptionValues, io: Io): Promise<number> {
  const target = findTarget(values, io);
  const gateway = new Gateway(target);
  let status: ReturnType<DoctorContext["status"]> | undefined;
  const findings = await runChecks({
    io,
    home: target.home,
    explicitUrl: target.explicitUrl,
    settingsFile: findSettings(undefined, values, io),
    status: () => (status ??= gateway.runWithClockSkew(api.status)),
    jobs: async () => (await gateway.run(api.jobs)).jobs,
  });
  const failed = findings.some(({ severity }) => severity === "error");
  if (values.has("json")) printJson(io, { ok: !failed, checks: findings });
  else print(io, findingsText(findings, painter(io.stdout, io.env)));
  return failed ? exitCodes.unhealthy : exitCodes.ok;
}

/** One line per finding with its fix below, and their numbers by severity. Pure. */
export function findingsText(findings: readonly Finding[], paint: Paint): string {
  const width = Math.max(...findings.map(({ id }) => id.length));
  const marks = { ok: paint("green", "✓"), warning: paint("yellow", "!"), error: paint("red", "✗") };
  const lines = findings.map(({ id, severity, message, fix }) => {
    const line = `${marks[severity]} ${id.padEnd(width)}  ${message}`;
    return fix === null ? line : `${line}\n${" ".repeat(width + 4)}${paint("bold", "fix:")} ${fix}`;
  });
  const count = (wanted: Finding["severity"]): number => findings.filter(({ severity }) => severity === wanted).length;
  return `${lines.join("\n")}\n\n${count("ok")} ok, ${pluralize(count("warning"), "warning")}, ${pluralize(count("error"), "error")}`;
}
