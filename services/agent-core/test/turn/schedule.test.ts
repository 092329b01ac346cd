import assert from "node:assert/strict";
import { posix } from "node:path";
import { test } from "node:test";
import type { ToolDescriptor, ToolExecution } from "@parley/contracts";
import fc from "fast-check";
import { callGroups, type PlannedCall } from "../../src/tools/call-groups.ts";

type Resource = ToolDescriptor["resource"];

function planned(
  name: string,
  tool: { readOnly: boolean; resource?: Resource } | undefined,
  input = "{}",
): PlannedCall {
  return {
    step: {
      turnId: "t",
      n: 1,
      callId: name,
      tool: name,
      class: "pure",
      state: "intended",
      input,
      result: null,
      runner: null,
      startedAt: null,
    },
    tool: tool === undefined ? undefined : { name, timeoutMs: 1, resource: { kind: "none" }, ...tool },
  };
}

const file: Resource = { kind: "path", argument: "path" };
const reads = (name: string) => planned(name, { readOnly: true });
const writes = (name: string, path: string) =>
  planned(name, { readOnly: false, resource: file }, JSON.stringify({ path }));
const anything = (name: string) => planned(name, { readOnly: false, resource: { kind: "process" } });
/** Writes nothing that others could. */
const notify = (name: string) => planned(name, { readOnly: false });
const unknown = (name: string) => planned(name, undefined);

function names(calls: PlannedCall[], execution: ToolExecution, maxParallel = 8): string[][] {
  return callGroups(calls, execution, maxParallel).map((group) => group.map(({ step }) => step.tool));
}

// design: 003.14b
test("groups adjacent reads and runs everything else alone and in order", () => {
  const calls = [reads("r1"), reads("r2"), writes("w1", "a"), writes("w2", "b"), reads("r3"), unknown("u1")];
  assert.deepEqual(names(calls, "readonly_parallel"), [["r1", "r2"], ["w1"], ["w2"], ["r3", "u1"]]);
});

// design: switch.1
test("runs writes to different files in parallel, and writes to the same file never", () => {
  const calls = [reads("r1"), writes("w1", "a"), writes("w2", "./b"), writes("w3", "././b"), reads("r2")];
  assert.deepEqual(names(calls, "parallel"), [
    ["r1", "w1", "w2"],
    ["w3", "r2"],
  ]);
});

// design: 001.2b, 002.1b
test("runs a tool of unknown effect alone, and a write whose target is unreadable", () => {
  const broken = planned("broken", { readOnly: false, resource: file }, "{");
  const pathless = planned("pathless", { readOnly: false, resource: file });
  const calls = [notify("n1"), notify("n2"), anything("x1"), notify("n3"), broken, reads("r1"), pathless];
  assert.deepEqual(names(calls, "parallel"), [["n1", "n2"], ["x1"], ["n3"], ["broken"], ["r1"], ["pathless"]]);
});

test("recognises a file by any spelling of its path", () => {
  for (const path of ["a/../dir/b", "./dir//b", "/work/dir/b", "dir/./b"]) {
    assert.deepEqual(names([writes("w1", "dir/b"), writes("w2", path)], "parallel"), [["w1"], ["w2"]], path);
  }
  assert.deepEqual(names([writes("w1", "dir/b"), writes("w2", "/work/other/b")], "parallel"), [["w1", "w2"]]);
});

// design: 003.14, switch.1
test("runs all calls one by one in serial mode, including reads", () => {
  assert.deepEqual(names([reads("a"), reads("b"), notify("c")], "serial"), [["a"], ["b"], ["c"]]);
});

const call = fc.oneof(
  fc.constant(reads),
  fc.constant(anything),
  fc.constant(notify),
  fc.constant(unknown),
  fc.constantFrom("a", "./a", "b", "././b", "x/../b").map((path) => (name: string) => writes(name, path)),
);

// design: 003.14b
test("keeps call order, group size, one writer per path and unknown effects alone for any calls", () => {
  fc.assert(
    fc.property(
      fc.array(call, { maxLength: 12 }),
      fc.constantFrom<ToolExecution>("serial", "readonly_parallel", "parallel"),
      fc.integer({ min: 1, max: 4 }),
      (makers, execution, maxParallel) => {
        const calls = makers.map((make, index) => make(`call-${index}`));
        const grouped = callGroups(calls, execution, maxParallel);
        assert.deepEqual(grouped.flat(), calls);
        for (const group of grouped) {
          assert.ok(group.length > 0 && group.length <= maxParallel);
          if (execution === "serial") assert.equal(group.length, 1);
          const mutating = group.filter(({ tool }) => tool?.readOnly === false);
          if (execution === "readonly_parallel" && mutating.length > 0) assert.equal(group.length, 1);
          if (group.some(({ tool }) => tool?.resource.kind === "process")) assert.equal(group.length, 1);
          const paths = mutating.flatMap(({ step, tool }) =>
            tool?.resource.kind === "path" ? [posix.normalize((JSON.parse(step.input) as { path: string }).path)] : [],
          );
          assert.equal(new Set(paths).size, paths.length, `two writers of one path: ${paths.join()}`);
        }
      },
    ),
  );
});
