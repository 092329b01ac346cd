// `parley doctor`: checks every part independently and suggests fixes.

import { Gateway, type Answered } from "../cluster/gateway.ts";
import { StatusAnswer } from "../cluster/shapes.ts";
import { findTarget } from "../cluster/target.ts";
import type { Run } from "../command-line/command.ts";
import { findSettings } from "../config/find.ts";
import type { Finding } from "../doctor/finding.ts";
import { runChecks } from "../doctor/run.ts";
import { exitCodes } from "../exit-codes.ts";
import { painter, print, printJson, type Paint } from "../io.ts";

export const run: Run = async ({ values, io }) => {
  const target = findTarget(values, io);
  const gateway = new Gateway(target);
  let asked: Promise<Answered<StatusAnswer>> | undefined;
  const findings = await runChecks({
    io,
    home: target.home,
    elsewhere: target.elsewhere,
    settingsFile: findSettings(undefined, values, io),
    status: () => (asked ??= gateway.getTimed("/api/status", StatusAnswer)),
  });
  const failed = findings.some(({ severity }) => severity === "error");
  if (values.has("json")) printJson(io, { ok: !failed, checks: findings });
  else print(io, findingsText(findings, painter(io.stdout, io.env)));
  return failed ? exitCodes.unhealthy : exitCodes.ok;
};

export function findingsText(findings: readonly Finding[], paint: Paint): string {
  const width = Math.max(...findings.map(({ id }) => id.length));
  const marks = { ok: paint("green", "✓"), warning: paint("yellow", "!"), error: paint("red", "✗") };
  const lines = findings.map(({ id, severity, message, fix }) => {
    const line = `${marks[severity]} ${id.padEnd(width)}  ${message}`;
    return fix === null ? line : `${line}\n${" ".repeat(width + 4)}${paint("bold", "fix:")} ${fix}`;
  });
  const count = (wanted: Finding["severity"]): number => findings.filter(({ severity }) => severity === wanted).length;
  return `${lines.join("\n")}\n\n${count("ok")} ok, ${count("warning")} warnings, ${count("error")} errors`;
}
