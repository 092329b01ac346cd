// Cases and graders of `parley eval`, and its reports.
import assert from "node:assert/strict";
import { test } from "node:test";

import { differenceText } from "../src/commands/eval.ts";
import { readCases } from "../src/eval/case-file.ts";
import { failureOf, grade, type TurnRecord } from "../src/eval/graders.ts";
import { junitReport, textReport, type CaseResult } from "../src/eval/report.ts";
import { plain } from "../src/io/io.ts";

const turn: TurnRecord = {
  turnId: "t",
  answered: true,
  text: "It is 4 degrees.",
  tools: ["ls", "exec"],
  costUsd: 0.02,
  seconds: 3,
  modelCalls: 2,
  inputTokens: 10,
  outputTokens: 5,
};

// design: 001.32
test("passes and fails each grader", () => {
  for (const [passing, failing] of [
    [{ match: "It is 4 degrees." }, { match: "It is 4" }],
    [{ contains: "4 degrees" }, { contains: "5 degrees" }],
    [{ regex: "^It is \\d+" }, { regex: "^\\d+" }],
    [{ tool_used: "Bash" }, { tool_used: "write" }],
    [{ tool_sequence: ["LS", "exec"] }, { tool_sequence: ["exec", "ls"] }],
    [{ max_cost_usd: 0.02 }, { max_cost_usd: 0.019 }],
    [{ max_seconds: 3 }, { max_seconds: 2.9 }],
  ] as const) {
    const copy = (grader: object) => structuredClone(grader) as Parameters<typeof failureOf>[0];
    assert.equal(failureOf(copy(passing), turn), null);
    const [name = ""] = Object.keys(failing);
    assert.ok(failureOf(copy(failing), turn)?.startsWith(`${name}: `), name);
  }
  assert.match(failureOf({ max_cost_usd: 1 }, { ...turn, costUsd: null }) ?? "", /price of a call is unknown/);
  assert.match(grade([], { ...turn, answered: false }).join(), /ended without an answer/);
});

test("reads the cases of a file, or names the field that is wrong", () => {
  const [first, second] = readCases("a.yaml", "name: a\nturns:\n  - say: hi\n---\nname: b\nturns:\n  - say: ho\n");
  assert.deepEqual([first?.name, second?.name, first?.turns], ["a", "b", [{ say: "hi", expect: [] }]]);
  for (const [text, problem] of [
    ["name: a\nturns: []\n", /a\.yaml: turns/],
    ["name: a\nturns:\n  - say: hi\n    expect: [{ regex: '(' }]\n", /a\.yaml: turns/],
    ["name: a\nturns:\n  - say: hi\n    expect: [{ smells: good }]\n", /a\.yaml: turns/],
    ["name: [", /not valid YAML/],
    ["", /contains no case/],
  ] as const) {
    assert.throws(() => readCases("a.yaml", text), problem);
  }
});

test("reports results as text and as JUnit XML", () => {
  const result = (name: string, failures: string[]): CaseResult => {
    const turns = [{ ...turn, failures }];
    return { file: "a.yaml", name, passed: failures.length === 0, seconds: 3, costUsd: 0.02, turns, error: null };
  };
  const results = [result("good", []), result("bad & <worse>", ["contains: no \u0001"])];
  const text = textReport(results, plain);
  assert.match(text, /passed {2}good/);
  assert.match(text, /turn 1: contains: no/);
  assert.match(text, /1 of 2 cases passed$/);
  const xml = junitReport(results);
  assert.match(xml, /<testsuite name="a.yaml" tests="2" failures="1" time="6.000">/);
  assert.match(xml, /name="bad &amp; &lt;worse&gt;" time="3.000"><failure message="turn 1: contains: no ">/);
});

test("shows what differs between two turns", () => {
  const text = differenceText(turn, { ...turn, text: "It is 5 degrees.", tools: [], costUsd: null });
  assert.match(text, /-It is 4 degrees\.[\s\S]*\+It is 5 degrees\./);
  assert.match(text, /tools {4}ls, exec → none/);
  assert.match(text, /cost {5}\$0\.02 → unknown/);
  assert.match(differenceText(turn, turn), /The answer is the same/);
});
