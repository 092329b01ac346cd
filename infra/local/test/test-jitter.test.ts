import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";
import { delayOf } from "../src/test-jitter.ts";

const jitter = new URL("../src/test-jitter.ts", import.meta.url).href;

test("delays the given share of the chunks, most of them by less than 30 ms", () => {
  const answers = (...values: number[]) => {
    const left = values.values();
    return () => left.next().value ?? assert.fail("asked too often");
  };
  assert.equal(delayOf(0.1, answers(0.1)), 0);
  assert.equal(delayOf(0.1, answers(0.09, 0.25, 0.5)), 15);
  assert.equal(delayOf(0.1, answers(0.09, 0.24, 0.5)), 140);
  assert.equal(delayOf(0, answers(0)), 0);
});

test("keeps the order of what a socket and a pipe receive, and their end", async () => {
  const program = `
    import { spawn } from "node:child_process";
    import { once } from "node:events";
    import { connect, createServer } from "node:net";
    import { text } from "node:stream/consumers";
    const numbers = Array.from({ length: 40 }, (_, n) => String(n));
    const server = createServer(async (socket) => {
      for (const n of numbers) {
        socket.write(n + " ");
        await new Promise(setImmediate);
      }
      socket.end();
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const begin = performance.now();
    const received = await text(connect(server.address().port, "127.0.0.1"));
    server.close();
    const printed = await text(spawn("seq", ["-s", " ", "0", "39"]).stdout);
    const expected = numbers.join(" ");
    const isDelayed = performance.now() - begin > 30;
    console.log(JSON.stringify([received.trim() === expected, printed.trim() === expected, isDelayed]));`;
  const options = ["--import", jitter, "--input-type=module", "--eval", program];
  const { stdout } = await promisify(execFile)(process.execPath, options, {
    env: { PATH: process.env["PATH"], PARLEY_TEST_JITTER: "1" },
  });
  assert.deepEqual(JSON.parse(stdout), [true, true, true]);
});
