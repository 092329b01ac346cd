import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Message } from "@parley/contracts";
import fc from "fast-check";
import {
  note,
  noteKinds,
  repeatedCalls,
  repeatWarningDue,
  roundsOf,
  unfinishedText,
  type NoteKind,
} from "../../src/limits/loop-guards.ts";
import { releasedMessages } from "../../src/session/log-records.ts";
import { answer, loopSays, message, person, text, used } from "./support.ts";

const says = (kind: NoteKind) => loopSays(note(kind, "go on"));
const nudge = () => says("nudge");

describe("rounds without tools", () => {
  // design: 002.4
  test("counts consecutive nudges and resets after a tool call or a person's message", () => {
    const nudged = [person("go"), answer("a"), nudge(), answer("b"), nudge()];
    const expected = {
      withoutTools: 2,
      nudges: 2,
      stopHookActive: false,
      reprompted: false,
      emptyAnswers: 0,
      mismatches: 0,
    };
    assert.deepEqual(roundsOf(nudged), expected);
    for (const between of [used("read", {}, "x"), [person("and?")]]) {
      const { withoutTools, nudges } = roundsOf([...nudged, ...between, answer("c"), nudge()]);
      assert.deepEqual([withoutTools, nudges], [1, 1]);
    }
  });

  test("counts a nudge after another note as the first nudge and one more round", () => {
    const { withoutTools, nudges } = roundsOf([answer("a"), nudge(), says("stopHook"), nudge()]);
    assert.deepEqual([withoutTools, nudges], [3, 1]);
  });

  test("remembers a Stop hook and a reminder for the whole turn", () => {
    const { stopHookActive, reprompted } = roundsOf([
      says("stopHook"),
      says("unspoken"),
      ...used("read", {}, "x"),
      person("and?"),
    ]);
    assert.deepEqual([stopHookActive, reprompted], [true, true]);
  });

  test("ignores people and hooks that write the text of a note", () => {
    const words = `${noteKinds.stopHook} go on]`;
    assert.equal(roundsOf([person(words), message("assistant", [text(words)])]).stopHookActive, false);
    assert.equal(roundsOf([loopSays([text("It rains.")])]).withoutTools, 0);
  });

  test("does not count the warning about repeated calls as a round", () => {
    assert.equal(roundsOf([...used("read", {}, "x"), says("repeated")]).withoutTools, 0);
  });
});

describe("repeated calls", () => {
  const repeated = (times: number) => Array.from({ length: times }, () => used("read", { path: "a" }, "same")).flat();

  test("counts consecutive calls with the same arguments and the same result", () => {
    assert.equal(repeatedCalls([]), 0);
    for (const times of [1, 2, 5]) assert.equal(repeatedCalls(repeated(times)), times);
    assert.equal(repeatedCalls([...repeated(3), ...used("read", { path: "a" }, "other")]), 1);
    assert.equal(repeatedCalls([...repeated(3), ...used("read", { path: "b" }, "same")]), 1);
    assert.equal(repeatedCalls([...repeated(3), ...used("grep", { path: "a" }, "same")]), 1);
  });

  test("warns once at the third repetition and again after a different call", () => {
    assert.equal(repeatWarningDue(repeated(2)), false);
    assert.equal(repeatWarningDue(repeated(3)), true);
    const told = [...repeated(3), says("repeated"), ...repeated(1)];
    assert.equal(repeatWarningDue(told), false);
    assert.equal(repeatWarningDue([...told, ...used("read", { path: "b" }, "x"), ...repeated(3)]), true);
  });

  test("warns when parallel calls skip the third repetition", () => {
    const pair = (): Message[] => {
      const [first, second] = [used("read", {}, "same"), used("read", {}, "same")];
      return [
        message(
          "assistant",
          [first, second].flatMap(([called]) => called?.parts ?? []),
        ),
        message(
          "tool",
          [first, second].flatMap(([, result]) => result?.parts ?? []),
        ),
      ];
    };
    assert.equal(repeatWarningDue(pair()), false);
    assert.equal(repeatWarningDue([...pair(), ...pair()]), true);
    assert.equal(repeatWarningDue([...pair(), ...pair(), says("repeated"), ...pair()]), false);
  });
});

describe("an answer in pieces", () => {
  test("adds text that was cut off or before a pause to the next reply", () => {
    assert.equal(unfinishedText([person("go"), answer("one"), nudge(), answer("two"), nudge()]), "one\n\ntwo");
    assert.equal(unfinishedText([person("go"), answer("searching")]), "searching");
    assert.equal(unfinishedText([person("go"), answer("one"), nudge(), person("also this")]), "one");
  });

  test("excludes rejected answers, unsent answers and text before a tool call", () => {
    assert.equal(unfinishedText([answer("one"), says("stopHook")]), "");
    assert.equal(unfinishedText([answer("one"), says("unspoken")]), "");
    assert.equal(unfinishedText([answer("one"), ...used("read", {}, "x")]), "");
  });
});

test("returns the same guards for messages that a compaction has released, without their long results", () => {
  const long = (end: string) => used("read", { path: "a" }, `${"x".repeat(10_000)}${end}`);
  const messages = [person("go"), ...long("1"), ...long("2"), ...long("2"), answer("one"), nudge(), answer("two")];
  const released = releasedMessages(messages);
  assert.ok(JSON.stringify(released).length < 3_000);
  assert.equal(repeatedCalls(released), 2);
  assert.equal(unfinishedText(released), "one\n\ntwo");
  assert.deepEqual(roundsOf(released), roundsOf(messages));
  assert.deepEqual(releasedMessages(released), released);
});

// design: 003.10
test("returns the same guards for messages that were read back from the store", () => {
  const step = fc.constantFrom<() => Message[]>(
    () => [person("hello")],
    () => [answer("hm")],
    () => used("read", { path: "a" }, "same"),
    () => used("read", { path: "b" }, "other"),
    () => [nudge()],
    () => [says("stopHook")],
    () => [says("unspoken")],
    () => [says("repeated")],
    () => [loopSays([text("context of a hook")])],
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 20 }), (steps) => {
      const messages = steps.flatMap((make) => make());
      const stored = JSON.parse(JSON.stringify(messages)) as Message[];
      assert.deepEqual(roundsOf(stored), roundsOf(messages));
      assert.equal(repeatedCalls(stored), repeatedCalls(messages));
      assert.equal(repeatWarningDue(stored), repeatWarningDue(messages));
      assert.equal(unfinishedText(stored), unfinishedText(messages));
      const { withoutTools, nudges } = roundsOf(messages);
      assert.ok(nudges <= withoutTools);
    }),
  );
});
