import assert from "node:assert/strict";
import { test } from "node:test";

import { printAnswer } from "../src/chat/print-answer.ts";
import { processIo } from "../src/io/io.ts";
import { finishRun } from "../src/run/finish.ts";
import type { RunResult } from "../src/run/stream.ts";

/** Sets the clipboard, clears the screen, and rings. */
const hostile = "a\u001B]52;c;ZXZpbA==\u0007b\u001B[2Jc\u0007\td\nlast";

/** What a function writes to standard output. */
function written(isTTY: boolean, write: (io: ReturnType<typeof processIo>) => void): string {
  let text = "";
  const stdout = { isTTY, write: (part: string) => (text += part) } as unknown as NodeJS.WriteStream;
  write({ ...processIo(), stdout });
  return text;
}

test("removes what controls a terminal from an answer, and changes nothing in a pipe", () => {
  const answered = { type: "result", is_error: false, terminal_reason: "end_turn", result: hostile } as RunResult;
  const ended = { failed: false, interrupted: false, maxUsd: null };
  for (const write of [
    (io: ReturnType<typeof processIo>) => printAnswer(io, hostile),
    (io: ReturnType<typeof processIo>) => void finishRun(io, "text", answered, ended),
  ]) {
    assert.equal(written(true, write), "abc\td\nlast\n");
    assert.equal(written(false, write), `${hostile}\n`);
  }
});
