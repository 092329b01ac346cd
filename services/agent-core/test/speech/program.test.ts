// Transcription by a local program: real scripts in place of whisper.
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { pollUntil } from "@parley/testing/until";
import { programTranscriber } from "../../src/voice/program-transcriber.ts";
import { TranscriptionError } from "../../src/voice/transcriber.ts";

const folder = mkdtempSync(join(tmpdir(), "parley-speech-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const never = new AbortController().signal;
const voice = { name: "../../a b.ogg", mediaType: "audio/ogg" };
let count = 0;

/** Transcribes with a shell script, which gets the path of the recording as `$1`. */
function transcribe(script: string, options: { timeoutMs?: number; signal?: AbortSignal } = {}): Promise<string> {
  const file = join(folder, `script-${++count}`);
  writeFileSync(file, `#!/bin/sh\n${script}\n`, { mode: 0o700 });
  const environment = { PATH: process.env["PATH"], ANTHROPIC_API_KEY: "secret" };
  const transcriber = programTranscriber([file, "{file}"], options.timeoutMs ?? 60_000, environment);
  return transcriber.transcribe(voice, Buffer.from("OggS speech"), options.signal ?? never);
}

const failsWith = (message: RegExp) => (error: unknown) =>
  error instanceof TranscriptionError && message.test(error.message);

// design: 001.22
test("returns what the program writes for the recording, and deletes the recording", async () => {
  const [path = "", content, place] = (await transcribe('echo "$1"; cat "$1"; echo; pwd; echo hidden >&2')).split("\n");
  assert.match(path, /\/recording\.ogg$/);
  assert.deepEqual([content, place], ["OggS speech", dirname(path)]);
  assert.equal(existsSync(dirname(path)), false);
});

test("gives the program no variable of the service but PATH and LANG", async () => {
  const names = (await transcribe("env")).split("\n").map((line) => line.split("=")[0]);
  for (const name of names)
    assert.ok(["PATH", "LANG", "HOME", "PWD", "OLDPWD", "SHLVL", "_"].includes(name ?? ""), name);
});

test("fails when the program fails, cannot start or writes too much", async () => {
  await assert.rejects(
    transcribe("echo private >&2; exit 3"),
    failsWith(/^the transcription program ended with exit code 3$/),
  );
  await assert.rejects(transcribe("exec yes"), failsWith(/wrote more than 256 KiB/));
  const missing = programTranscriber([join(folder, "missing"), "{file}"], 60_000, {});
  await assert.rejects(missing.transcribe(voice, Buffer.alloc(1), never), failsWith(/could not be started/));
});

test("ends the program and what it started at the timeout and when the turn is stopped", async () => {
  const pidFile = join(folder, "pid");
  const hang = `sleep 600 &\necho $! > ${pidFile}\nwait`;
  await assert.rejects(transcribe(hang, { timeoutMs: 2_000 }), failsWith(/timed out/));
  // On a busy machine it may have started nothing yet.
  await pollUntil(
    async () => !existsSync(pidFile) || !isRunning(Number(readFileSync(pidFile, "utf8"))),
    "the end of the program",
  );
  rmSync(pidFile, { force: true });
  const stop = new AbortController();
  const stopped = assert.rejects(transcribe(hang, { signal: stop.signal }), /the turn was stopped/);
  await pollUntil(async () => existsSync(pidFile) && readFileSync(pidFile, "utf8").endsWith("\n"), "the program");
  stop.abort(new Error("the turn was stopped"));
  await stopped;
  await pollUntil(async () => !isRunning(Number(readFileSync(pidFile, "utf8"))), "the end of the program");
});

/** Whether a process runs; a zombie has ended. */
function isRunning(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}
