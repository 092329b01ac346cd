// The results of `parley eval` as text, JSON and JUnit XML. Pure.

import type { Paint } from "../io/io.ts";
import type { TurnRecord } from "./graders.ts";

export interface CaseResult {
  readonly file: string;
  readonly name: string;
  readonly passed: boolean;
  readonly seconds: number;
  /** Null: the price of a call is unknown. */
  readonly costUsd: number | null;
  readonly turns: readonly (TurnRecord & { readonly failures: readonly string[] })[];
  /** The case could not run. */
  readonly error: string | null;
}

function failuresOf({ turns, error }: CaseResult): string[] {
  const ofTurns = turns.flatMap(({ failures }, at) => failures.map((failure) => `turn ${at + 1}: ${failure}`));
  return [...ofTurns, ...(error === null ? [] : [error])];
}

export function textReport(results: readonly CaseResult[], paint: Paint): string {
  const lines = results.flatMap((result) => {
    const mark = result.passed ? paint("green", "passed") : paint("red", "failed");
    const cost = result.costUsd === null ? "unknown cost" : `$${result.costUsd}`;
    const head = `${mark}  ${result.name}  ${result.seconds.toFixed(1)} s, ${cost}`;
    return [head, ...failuresOf(result).map((failure) => `        ${failure}`)];
  });
  const passed = results.filter((result) => result.passed).length;
  return [...lines, `${passed} of ${results.length} cases passed`].join("\n");
}

/** One test suite per file. */
export function junitReport(results: readonly CaseResult[]): string {
  const suites = [...Map.groupBy(results, ({ file }) => file)].map(([file, cases]) => {
    const failed = cases.filter(({ passed }) => !passed).length;
    const head = `<testsuite name="${xml(file)}" tests="${cases.length}" failures="${failed}" time="${sum(cases)}">`;
    return [head, ...cases.map(testcase), "</testsuite>"].join("\n");
  });
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n${suites.join("\n")}\n</testsuites>`;
}

function testcase(result: CaseResult): string {
  const head = `<testcase classname="${xml(result.file)}" name="${xml(result.name)}" time="${result.seconds.toFixed(3)}"`;
  const failures = failuresOf(result);
  if (failures.length === 0) return `${head}/>`;
  return `${head}><failure message="${xml(failures[0] ?? "")}">${xml(failures.join("\n"))}</failure></testcase>`;
}

function sum(cases: readonly CaseResult[]): string {
  return cases.reduce((seconds, each) => seconds + each.seconds, 0).toFixed(3);
}

const entities: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

/** Without the control characters that XML does not allow. */
function xml(text: string): string {
  // oxlint-disable-next-line no-control-regex -- they are removed here
  const allowed = text.replaceAll(/[\u0000-\u0008\u000B\u000C\u000E-\u001F\uFFFE\uFFFF]/g, "");
  return allowed.replaceAll(/[&<>"]/g, (sign) => entities[sign] ?? sign);
}
