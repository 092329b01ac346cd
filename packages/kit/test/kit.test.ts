import assert from "node:assert/strict";
import { describe, test } from "node:test";

import fc from "fast-check";

import {
  abortable,
  backoffMs,
  elideMiddle,
  FairSemaphore,
  millisecondsSince,
  nameUuid,
  omitUndefined,
  oneLine,
  operationId,
  parseJson,
  Permit,
  pluralize,
  rerunWhileRequested,
} from "@parley/kit";

const never = new AbortController().signal;

describe("backoffMs", () => {
  test("doubles after each failure and stops at the maximum", () => {
    const delays = [0, 1, 2, 3, 4, 40].map((failures) => backoffMs(failures, { firstMs: 100, maxMs: 500 }));
    assert.deepEqual(delays, [100, 100, 200, 400, 500, 500]);
  });

  test("adds at most the share of jitter and stays at or below the maximum", () => {
    const options = { firstMs: 100, maxMs: 1_000, jitter: 0.2 };
    fc.assert(
      fc.property(fc.nat(50), fc.double({ min: 0, max: 0.999, noNaN: true }), (failures, random) => {
        const plain = backoffMs(failures, { ...options, jitter: 0 });
        const delay = backoffMs(failures, options, random);
        assert.ok(delay >= plain && delay <= Math.min(1_000, plain * 1.2));
      }),
    );
  });
});

test("tells the time since an instant, and 0 when a clock is ahead", () => {
  const at = (ms: number) => new Date(Date.now() + ms).toISOString();
  const elapsed = millisecondsSince(at(-60_000)) ?? 0;
  assert.ok(elapsed >= 60_000 && elapsed < 120_000, String(elapsed));
  assert.equal(millisecondsSince(at(60_000)), 0);
  assert.equal(millisecondsSince(null), undefined);
});

describe("FairSemaphore", () => {
  test("serves the lowest key first, then the order of the requests", async () => {
    const semaphore = new FairSemaphore(1);
    const release = await semaphore.acquire(never);
    const served: string[] = [];
    const waiters = ["b", "a", "b2", "a2"].map(async (name) => {
      const end = await semaphore.acquire(never, name.slice(0, 1));
      served.push(name);
      end();
    });
    release();
    await Promise.all(waiters);
    assert.deepEqual(served, ["a", "a2", "b", "b2"]);
    assert.equal(semaphore.held, 0);
  });

  test("never exceeds its size and loses no permit when some abort or release twice", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 4 }),
        fc.array(fc.record({ key: fc.constantFrom("1", "2", "3"), abort: fc.boolean() }), { maxLength: 20 }),
        async (size, requests) => {
          const semaphore = new FairSemaphore(size);
          let running = 0;
          await Promise.all(
            requests.map(async ({ key, abort }) => {
              const controller = new AbortController();
              const waiting = semaphore.acquire(controller.signal, key);
              if (abort) controller.abort(new Error("cancelled"));
              const release = await waiting.catch(() => undefined);
              if (release === undefined) return;
              running += 1;
              assert.ok(running <= size);
              await Promise.resolve();
              running -= 1;
              release();
              release();
            }),
          );
          assert.equal(semaphore.held, 0);
          assert.equal(semaphore.waiting, 0);
        },
      ),
    );
  });

  test("rejects with the signal's reason when aborted before or while waiting", async () => {
    const semaphore = new FairSemaphore(1);
    await assert.rejects(semaphore.acquire(AbortSignal.abort(new Error("before"))), /before/);
    const release = await semaphore.acquire(never);
    const controller = new AbortController();
    const waiting = semaphore.acquire(controller.signal);
    controller.abort(new Error("while waiting"));
    await assert.rejects(waiting, /while waiting/);
    release();
    assert.equal(semaphore.held, 0);
  });

  test("gives a released permit to others until it is acquired again", async () => {
    const semaphore = new FairSemaphore(1);
    const permit = new Permit(semaphore);
    await permit.acquire(never);
    await permit.acquire(never);
    assert.equal(semaphore.held, 1);
    permit.release();
    permit.release();
    const other = await semaphore.acquire(never);
    const again = permit.acquire(never);
    assert.equal(semaphore.waiting, 1);
    other();
    await again;
    assert.equal(semaphore.held, 1);
  });
});

describe("rerunWhileRequested", () => {
  test("runs again for a call during a run, at every moment of it", async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 6 }), fc.nat(12), async (workTicks, callTicks) => {
        let begun = 0;
        const run = rerunWhileRequested(async () => {
          begun += 1;
          for (let tick = 0; tick < workTicks; tick++) await Promise.resolve();
        }, never);
        const first = run();
        for (let tick = 0; tick < callTicks; tick++) await Promise.resolve();
        const before = begun;
        await run();
        // A call before the first run began is served by that run.
        assert.ok(begun > before, `${begun} runs began, ${before} before the call`);
        await first;
      }),
    );
  });

  test("rejects the callers with the error, and runs again when called again", async () => {
    let fail = true;
    const run = rerunWhileRequested(() => (fail ? Promise.reject(new Error("failed")) : Promise.resolve()), never);
    await assert.rejects(run(), /failed/);
    fail = false;
    await run();
  });

  test("begins no run after the abort", async () => {
    const run = rerunWhileRequested(() => Promise.reject(new Error("began")), AbortSignal.abort());
    await run();
  });
});

describe("abortable", () => {
  test("rejects with the signal's reason and ignores the later outcome", async () => {
    const controller = new AbortController();
    const work = Promise.withResolvers<string>();
    const waiting = abortable(work.promise, controller.signal);
    controller.abort(new Error("stopped"));
    await assert.rejects(waiting, /stopped/);
    work.reject(new Error("not reported"));
    assert.equal(await abortable(Promise.resolve("done"), never), "done");
    assert.equal(await abortable(Promise.resolve("done"), undefined), "done");
  });
});

describe("texts", () => {
  test("oneLine removes control characters and cuts at the limit", () => {
    assert.equal(oneLine(" a\n\tb\u0000c\u200B d "), "a b c d");
    assert.equal(oneLine("abcdef", 4), "abc…");
    assert.equal(oneLine("abcd", 4), "abcd");
  });

  test("elideMiddle stays within the limit, well-formed, with both ends", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 400 }), fc.nat(300), (text, maxChars) => {
        const short = elideMiddle(text, maxChars);
        assert.ok(short.length <= Math.max(maxChars, 0));
        if (text.length <= maxChars) assert.equal(short, text);
        else assert.ok(short.isWellFormed());
      }),
    );
    assert.match(elideMiddle(`start${"x".repeat(500)}end`, 200), /^start.*\[… \d+ characters omitted …\].*end$/s);
  });

  test("pluralize uses the singular for one only", () => {
    assert.deepEqual(
      [0, 1, 2].map((count) => pluralize(count, "reply", "replies")),
      ["0 replies", "1 reply", "2 replies"],
    );
  });
});

describe("ids", () => {
  test("nameUuid is a UUID of version 8 and differs for different texts", () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (a, b) => {
        assert.match(nameUuid(a), /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
        assert.equal(nameUuid(a) === nameUuid(b), a === b);
      }),
    );
    assert.notEqual(operationId("local", "t", 1), operationId("document", "t", 1));
  });
});

describe("values", () => {
  test("omitUndefined keeps null, zero and empty texts", () => {
    assert.deepEqual(omitUndefined({ a: undefined, b: null, c: 0, d: "" }), { b: null, c: 0, d: "" });
  });

  test("parseJson returns undefined for a text that is not JSON", () => {
    assert.deepEqual(parseJson('{"a":[1]}'), { a: [1] });
    assert.equal(parseJson("{"), undefined);
    assert.equal(parseJson("null"), null);
  });
});
