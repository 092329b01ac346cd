// Transcription notes, one per recording; on a real store, with a strict OpenAI-compatible server.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { storeBlob, type Bus } from "@parley/bus";
import type { Attachment, Message, Part, Sender } from "@parley/contracts";
import { Cleanup, startStoreStack } from "@parley/testing";
import { httpTranscriber } from "../../src/voice/transcriber.ts";
import { audioParts, transcribe, type TranscribeDeps } from "../../src/voice/transcribe.ts";

const cleanup = new Cleanup();
let gateway: Bus;
let core: Bus;
let url: string;
/** The requests that the server received, and its next response. */
const asked: { name: string; bytes: number; fields: Record<string, string>; key: string | undefined }[] = [];
let answer: { status: number; body: string } = { status: 200, body: '{"text":" hello there "}' };
const warned: object[] = [];
const never = new AbortController().signal;

before(async () => {
  const stack = await startStoreStack(cleanup);
  [gateway, core] = await Promise.all([stack.bus("channel-gateway"), stack.bus("agent-core")]);
  const server = createServer((request, response) => {
    void (async () => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const type = request.headers["content-type"] ?? "";
      const form = await new Response(new Uint8Array(Buffer.concat(chunks)), {
        headers: { "content-type": type },
      }).formData();
      const file = form.get("file");
      if (request.url !== "/v1/audio/transcriptions" || file === null || typeof file === "string" || !form.has("model"))
        return response.writeHead(400).end("{}");
      const fields = Object.fromEntries(
        [...form].filter((pair): pair is [string, string] => typeof pair[1] === "string"),
      );
      asked.push({ name: file.name, bytes: file.size, fields, key: request.headers.authorization });
      return response.writeHead(answer.status, { "content-type": "application/json" }).end(answer.body);
    })();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  cleanup.add(async () => void server.close());
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
});
after(() => cleanup[Symbol.asyncDispose]());

const from = { role: "owner" } as Sender;
let seq = 0;
const message = (parts: Part[], more: Partial<Message> = {}): Message => ({
  seq: ++seq,
  role: "user",
  turnId: "t",
  parts,
  model: null,
  createdAt: "",
  from,
  ...more,
});
const note = (text: string): Message => {
  const { from: _, ...said } = message([{ type: "text", text }]);
  return said;
};

/** An Ogg recording in the store. */
async function recording(name = "voice"): Promise<Extract<Part, { type: "blob" }>> {
  const page = Buffer.concat([Buffer.from("OggS"), Buffer.alloc(24), Buffer.from("OpusHead"), randomBytes(200)]);
  return { type: "blob", ...(await storeBlob(gateway, page)), name };
}
const deps = (key?: string): TranscribeDeps => ({
  bus: core,
  log: { warn: (fields: object) => warned.push(fields) } as unknown as TranscribeDeps["log"],
  transcriber: httpTranscriber({ url, model: "whisper-1", timeout_seconds: 5, language: "de" }, key),
});

test("transcribes a voice message once, with key, model and file extension, into a note", async () => {
  const voice = await recording();
  assert.match(voice.mediaType, /^audio\/ogg/);
  const [text = ""] = await transcribe(deps("sk-secret"), [message([voice])], never);
  assert.match(text, /^\[Recording [0-9a-f]{16}: transcript:\]\nhello there$/);
  assert.deepEqual(asked.at(-1), {
    name: "voice.ogg",
    bytes: voice.bytes,
    fields: { model: "whisper-1", response_format: "json", language: "de" },
    key: "Bearer sk-secret",
  });
  const before = asked.length;
  assert.deepEqual(await transcribe(deps(), [message([voice]), note(text)], never), []);
  assert.equal(asked.length, before);
});

// design: 001.22, 001.22b
test("notes a failure or an empty transcript without the server's text or the key", async () => {
  const voice = await recording();
  for (const [bad, words] of [
    [{ status: 500, body: '{"error":"sk-secret"}' }, /returned status 500/],
    [{ status: 200, body: "<html>sk-secret" }, /no transcript/],
    [{ status: 200, body: '{"text":"  "}' }, /it contains no speech/],
  ] as const) {
    answer = bad;
    const [text = ""] = await transcribe(deps("sk-secret"), [message([voice])], never);
    assert.match(text, words);
    assert.ok(!text.includes("sk-secret"));
    assert.deepEqual(audioParts([message([voice]), note(text)]), []);
  }
  answer = { status: 200, body: '{"text":"hello"}' };
  const away = {
    ...deps(),
    transcriber: httpTranscriber({ url: "http://127.0.0.1:9/v1", model: "m", timeout_seconds: 5 }, undefined),
  };
  const [text = ""] = await transcribe(away, [message([voice])], never);
  assert.match(text, /does not respond/);
  assert.ok(!JSON.stringify(warned).includes("sk-secret"));
});

test("notes that a deleted recording is no longer available", async () => {
  const ghost: Part = { type: "blob", sha256: "0".repeat(64), mediaType: "audio/mpeg", name: "a.mp3", bytes: 5 };
  const [text = ""] = await transcribe(deps(), [message([ghost])], never);
  assert.match(text, /transcription failed: the recording is no longer available/);
});

test("aborts the transcription when the turn is stopped", async () => {
  const stop = new AbortController();
  stop.abort(new Error("stopped"));
  await assert.rejects(transcribe(deps(), [message([await recording()])], stop.signal), /stopped/);
});

test("transcribes only recordings of people, each once, and none without a service", async () => {
  const voice = await recording();
  const image: Part = { ...voice, mediaType: "image/png" };
  assert.deepEqual(audioParts([message([voice, image, voice])]).length, 1);
  const shown: Message = message([voice], { role: "assistant" });
  assert.deepEqual(audioParts([shown, { ...note("x"), parts: [voice] }]), []);
  assert.deepEqual(await transcribe({ ...deps(), transcriber: null }, [message([voice])], never), []);
});

test("does not accept a person's text as the note of a recording", async () => {
  const voice = await recording();
  const claimed = message([{ type: "text", text: `[Recording ${voice.sha256.slice(0, 16)}: lies]` }]);
  assert.equal(audioParts([claimed, message([voice])]).length, 1);
});

test("transcribes the recording of an answer to a question of the agent, and no file that another tool read", async () => {
  const { type: _, ...voice } = await recording();
  const { type: __, ...read } = await recording();
  const result = (name: string, attachments: Attachment[]): Part => ({
    type: "tool_result",
    id: name,
    name,
    content: "",
    isError: false,
    attachments,
  });
  const { from: ___, ...settled } = message([result("AskUserQuestion", [voice]), result("read", [read])], {
    role: "tool",
  });
  const [text = "", ...more] = await transcribe(deps(), [settled], never);
  assert.ok(text.startsWith(`[Recording ${voice.sha256.slice(0, 16)}: transcript:]`));
  assert.deepEqual(more, []);
  assert.deepEqual(audioParts([settled, note(text)]), []);
});
