import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { delayOf } from "../src/test-jitter.ts";
import { folder } from "./support/folder.ts";

const program = fileURLToPath(new URL("../src/test.ts", import.meta.url));
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
  const script = `
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
  const options = ["--import", jitter, "--input-type=module", "--eval", script];
  const { stdout } = await promisify(execFile)(process.execPath, options, {
    env: { PATH: process.env["PATH"], PARLEY_TEST_JITTER: "1" },
  });
  assert.deepEqual(JSON.parse(stdout), [true, true, true]);
});

test("is loaded into every test process when PARLEY_TEST_JITTER is a share, and refuses any other value", () => {
  using home = folder();
  const file = join(home.path, "loaded.test.ts");
  const lines = [
    'import assert from "node:assert/strict";',
    'import { Socket } from "node:net";',
    'import { test } from "node:test";',
    'test("x", () => assert.equal(Socket.prototype.push.name, process.env["EXPECTED"]));',
  ];
  writeFileSync(file, lines.join("\n"));
  const run = (env: Record<string, string>) => {
    const { NODE_TEST_CONTEXT: _, PARLEY_TEST_JITTER: __, ...outer } = process.env;
    const args = ["--conditions=@parley/source", program, file];
    const { status, stderr } = spawnSync(process.execPath, args, { encoding: "utf8", env: { ...outer, ...env } });
    return { status, stderr };
  };
  assert.equal(run({ PARLEY_TEST_JITTER: "0", EXPECTED: "delayed" }).status, 0);
  const refused = run({ PARLEY_TEST_JITTER: "often" });
  assert.equal(refused.status, 1);
  assert.match(refused.stderr, /PARLEY_TEST_JITTER is "often"; set it to a share from 0 to 1/);
});
