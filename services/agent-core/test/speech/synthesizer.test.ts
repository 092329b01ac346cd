// Text to speech over HTTP, against a strict fake server and a third-party server.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { LLMock } from "@copilotkit/aimock";
import { ParleySettingsSchema, type SpeechSettings } from "@parley/contracts";
import { Cleanup, startSpeechPeer, type SpeechPeer } from "@parley/testing";
import { httpSynthesizer, SynthesisError } from "../../src/voice/synthesizer.ts";

const cleanup = new Cleanup();
let peer: SpeechPeer;
const signal = new AbortController().signal;

before(async () => {
  peer = await startSpeechPeer();
  cleanup.add(() => peer.close());
});
after(() => cleanup[Symbol.asyncDispose]());

function settings(more: object): SpeechSettings {
  const { speech } = ParleySettingsSchema.shape.voice.parse({ speech: { url: peer.url, model: "tts-1", ...more } });
  assert.ok(speech !== undefined);
  return speech;
}
const failsWith = (words: RegExp, again: boolean) => (error: unknown) =>
  error instanceof SynthesisError && words.test(error.message) && error.again === again;

test("returns audio in the voice and format of the settings or of the request", async () => {
  const synthesizer = httpSynthesizer(settings({ voice: "echo", format: "opus" }), peer.key);
  assert.deepEqual(Buffer.from(await synthesizer.synthesize("hello", { signal })), peer.soundOf("hello"));
  await synthesizer.synthesize("hello", { voice: "onyx", signal });
  const order = { model: "tts-1", input: "hello", response_format: "opus" };
  assert.deepEqual(peer.synthesized, [
    { ...order, voice: "echo" },
    { ...order, voice: "onyx" },
  ]);
  assert.deepEqual(peer.refusals, []);
});

test("marks temporary failures as retriable and omits the server's text", async () => {
  const synthesizer = httpSynthesizer(settings({}), peer.key);
  for (const [status, again] of [
    [500, true],
    [503, true],
    [429, true],
    [400, false],
    [401, false],
  ] as const) {
    peer.failNext(status);
    await assert.rejects(
      synthesizer.synthesize("x", { signal }),
      failsWith(new RegExp(`returned status ${status}$`), again),
    );
  }
  await assert.rejects(
    httpSynthesizer(settings({}), "wrong").synthesize("x", { signal }),
    failsWith(/returned status 401$/, false),
  );
});

test("distinguishes an unreachable server, a timeout and a response without audio", async () => {
  await assert.rejects(
    httpSynthesizer(settings({ url: "http://127.0.0.1:9/v1" }), undefined).synthesize("x", { signal }),
    failsWith(/does not respond$/, true),
  );
  const server = createServer((request, response) => {
    if (request.url === "/v1/audio/speech") response.writeHead(200, { "content-type": "application/json" }).end("{}");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  cleanup.add(async () => {
    server.close();
    server.closeAllConnections();
  });
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const at = (path: string, more = {}) =>
    httpSynthesizer(settings({ url: `http://127.0.0.1:${port}${path}`, ...more }), undefined);
  await assert.rejects(at("/v1").synthesize("x", { signal }), failsWith(/no audio$/, false));
  await assert.rejects(
    at("/silent", { timeout_seconds: 1 }).synthesize("x", { signal }),
    failsWith(/timed out$/, true),
  );
});

test("works with a third-party server of the same API", async () => {
  const mock = new LLMock({ port: 0 });
  const sound = Buffer.from("ID3 a sound");
  mock.onSpeech(/good evening/, { audio: sound.toString("base64"), format: "mp3" });
  await mock.start();
  cleanup.add(() => mock.stop());
  const synthesizer = httpSynthesizer(settings({ url: `${mock.url}/v1`, format: "mp3" }), undefined);
  assert.deepEqual(Buffer.from(await synthesizer.synthesize("good evening", { signal })), sound);
});
