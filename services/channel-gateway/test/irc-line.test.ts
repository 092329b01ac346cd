import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { lineReader } from "../src/channels/irc/framing.ts";
import { formatLine, IrcSyntaxError, isWord, parseLine } from "../src/channels/irc/line.ts";
import { fold } from "../src/channels/irc/names.ts";

/** Any text, including lone surrogates and control characters. */
const anyText = fc.oneof(
  fc.string({ unit: "binary", maxLength: 600 }),
  fc
    .array(
      fc.constantFrom("a", " ", "\r", "\n", "\0", ":", ";", "\\", "@", "\u0001", "\r\nQUIT", "é", "😀", "\ud83d"),
      { maxLength: 100 },
    )
    .map((parts) => parts.join("")),
);
const word = fc.string({ minLength: 1, maxLength: 20 }).filter(isWord);

test("parses a formatted line back to the same values", () => {
  const text = anyText.filter((one) => !/[\r\n\0]/.test(one));
  const tags = fc.dictionary(
    fc.stringMatching(/^\+?[a-z][a-z0-9./-]{0,9}$/),
    anyText.filter((one) => !one.includes("\0")),
    { maxKeys: 4 },
  );
  fc.assert(
    fc.property(tags, fc.array(word, { maxLength: 3 }), text, (given, middle, last) => {
      const line = parseLine(formatLine({ tags: given, command: "PRIVMSG", params: [...middle, last] }));
      assert.deepEqual(line?.params, [...middle, last]);
      assert.deepEqual(Object.fromEntries(line.tags), { ...given });
      assert.equal(line.command, "PRIVMSG");
    }),
  );
});

test("never formats more than one line, for any text, target and tag", () => {
  fc.assert(
    fc.property(anyText, anyText, anyText, (target, text, tag) => {
      let line: string;
      try {
        line = formatLine({ tags: { "+typing": tag }, command: "PRIVMSG", params: [target, text] });
      } catch (error) {
        assert.ok(error instanceof IrcSyntaxError);
        return;
      }
      assert.doesNotMatch(line, /[\r\n\0]/);
      assert.deepEqual(parseLine(line)?.params[0], target);
    }),
  );
});

test("never throws for any bytes and finds the same lines for any chunk size", () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 200 })), (chunks) => {
      const read = lineReader();
      for (const chunk of chunks) for (const line of read(chunk)) parseLine(line);
    }),
  );
  const line = ":ann!a@h PRIVMSG #agents :häß 😀";
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 9 }), (size) => {
      const bytes = Buffer.from(`${line}\r\n${line}\n`);
      const read = lineReader();
      const lines: string[] = [];
      for (let at = 0; at < bytes.length; at += size) lines.push(...read(bytes.subarray(at, at + size)));
      assert.deepEqual(lines, [line, line]);
    }),
  );
});

test("drops a line above the limit and reads the next one", () => {
  const read = lineReader();
  for (let times = 0; times < 100; times += 1) assert.deepEqual(read(Buffer.alloc(1_000, "a")), []);
  assert.deepEqual(read(Buffer.from("\nPING :x\n")), ["PING :x"]);
});

test("parses tags, source, command and parameters, and returns null for invalid lines", () => {
  assert.deepEqual(parseLine("@time=2026-01-01T00:00:00Z;x=a\\sb\\:c\\\\;y :ann!a@h PRIVMSG  #c :hi  there "), {
    tags: new Map([
      ["time", "2026-01-01T00:00:00Z"],
      ["x", "a b;c\\"],
      ["y", ""],
    ]),
    source: "ann!a@h",
    command: "PRIVMSG",
    params: ["#c", "hi  there "],
  });
  assert.deepEqual(parseLine(":s 001 me :Welcome")?.params, ["me", "Welcome"]);
  assert.deepEqual(parseLine("ping a")?.command, "PING");
  for (const none of ["", ":", "@a", "@a :b", "12 a", "é"]) assert.equal(parseLine(none), null);
});

test("folds names by the case mapping of the server", () => {
  assert.equal(fold("Ann[1]\\^", "rfc1459"), "ann{1}|~");
  assert.equal(fold("Ann[1]^", "rfc1459-strict"), "ann{1}^");
  assert.equal(fold("Ann[1]", "ascii"), "ann[1]");
});
