// Attachments end to end, on four real processes, with a model that refuses what the real API would refuse.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { deflateSync } from "node:zlib";
import { Client } from "pg";
import {
  apiClient,
  Cleanup,
  startTestCluster,
  startTelegramPeer,
  type ApiClient,
  type TestCluster,
} from "@parley/testing";
import type { TelegramPeer } from "@parley/testing";
import { z } from "zod";

const cleanup = new Cleanup();
let cluster: TestCluster;
let client: ApiClient;
let peer: TelegramPeer;

const hashOf = (content: Uint8Array) => createHash("sha256").update(content).digest("hex");

/** A picture of one white pixel, valid for every decoder. */
function png(comment: string): Buffer {
  const part = (type: string, data: Buffer) => {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(data.length);
    // No decoder here checks the checksum.
    return Buffer.concat([length, Buffer.from(type), data, Buffer.alloc(4)]);
  };
  return Buffer.concat([
    Buffer.from("89504e470d0a1a0a", "hex"),
    part("IHDR", Buffer.from("00000001000000010800000000", "hex")),
    part("tEXt", Buffer.from(comment)),
    part("IDAT", deflateSync(Buffer.from([0, 255]))),
    part("IEND", Buffer.alloc(0)),
  ]);
}
const pdf = Buffer.from("%PDF-1.4\n1 0 obj\n<< /Type /Catalog >>\nendobj\ntrailer << /Root 1 0 R >>\n%%EOF\n");

before(async () => {
  peer = await startTelegramPeer();
  cleanup.add(() => peer.close());
  const speech = createServer((request, response) => {
    request.resume().once("end", () => {
      response.writeHead(200, { "content-type": "application/json" }).end('{"text":"turn the light on"}');
    });
  });
  speech.listen(0, "127.0.0.1");
  await once(speech, "listening");
  cleanup.add(async () => void speech.close());
  const speechUrl = `http://127.0.0.1:${(speech.address() as AddressInfo).port}/v1`;
  const transcription = `[attachments.transcription]\nurl = "${speechUrl}"\nmodel = "whisper-1"\n`;
  const settings = `${transcription}[channels.telegram.main]\ntoken_env = "PARLEY_CHANNEL_TELEGRAM"\napi_root = "${peer.url}"\nowners = ["42"]\n`;
  cluster = await startTestCluster(cleanup, {
    processes: [],
    model: true,
    settings: `[session]\npolicy = "per_conversation"\n${settings}`,
    env: { "channel-gateway": { PARLEY_CHANNEL_TELEGRAM: peer.token } },
  });
  client = apiClient(cluster.httpUrls, cluster.token);
});
after(async () => {
  assert.deepEqual(cluster.strict?.refusals, [], "the real API would have refused these requests");
  await cleanup[Symbol.asyncDispose]();
});

async function upload(content: Buffer, name: string): Promise<string> {
  const url = `${cluster.httpUrl}/api/attachments?name=${encodeURIComponent(name)}`;
  const headers = { authorization: `Bearer ${cluster.token}`, "content-type": "application/octet-stream" };
  const response = await fetch(url, { method: "POST", headers, body: new Uint8Array(content) });
  assert.equal(response.status, 201);
  return z.object({ sha256: z.string() }).parse(await response.json()).sha256;
}

/** The content blocks of the newest request whose last user message contains a text. */
function lastBlocks(words: string) {
  const request = cluster.strict?.requests.findLast(({ messages }) => JSON.stringify(messages.at(-1)).includes(words));
  assert.ok(request !== undefined, `no request with ${words}`);
  return request.messages.at(-1)?.content ?? [];
}

const Accepted = z.object({ sessionId: z.string(), messageId: z.string() });
async function say(text: string, conversation: string, attachments: { id: string; name?: string }[] = []) {
  const body = JSON.stringify({ text, conversation, attachments });
  const response = await client.fetch("/api/messages", { method: "POST", body });
  assert.equal(response.status, 202);
  const accepted = Accepted.parse(await response.json());
  const turn = await client.settled(accepted.messageId);
  assert.equal(turn.state, "done");
  return accepted;
}
const messagesOf = async (sessionId: string) => (await client.fetch(`/api/sessions/${sessionId}/messages`)).text();

test("sends a picture to the model as an image and stores it when it came over HTTP", async () => {
  const picture = png("http");
  const id = await upload(picture, "a.png");
  const { sessionId } = await say("say: seen over http", "http", [{ id, name: "a.png" }]);
  const image = lastBlocks("seen over http").find((block) => block.type === "image");
  assert.deepEqual([image?.source.media_type, image?.source.data], ["image/png", picture.toString("base64")]);
  assert.ok((await messagesOf(sessionId)).includes(`"sha256":"${hashOf(picture)}"`));
});

test("shows a PDF inside the tool's result, also in the next turn, when a tool reads it", async () => {
  await writeFile(join(cluster.home, "workspace", "report.pdf"), pdf);
  await say('tool: read {"path":"report.pdf"}\nthen\nsay: read it', "tool");
  await say("say: and again", "tool");
  const requests = cluster.strict?.requests.filter(({ messages }) => JSON.stringify(messages).includes("report.pdf"));
  type Shown = { type: string; source?: { data: string } };
  const documents = requests?.map(({ messages }) =>
    messages
      .flatMap(({ content }): { type: string; content?: string | Shown[] }[] => content)
      .flatMap((block) => (typeof block.content === "object" ? block.content : []))
      .filter(({ type }) => type === "document"),
  );
  assert.deepEqual(
    documents?.map((each) => each.map(({ source }) => source?.data)),
    [[], [pdf.toString("base64")], [pdf.toString("base64")]],
  );
});

test("sees a Telegram photo, sends a workspace file as a document, and shows both over HTTP", async () => {
  const picture = png("telegram");
  peer.sendFile(picture, { kind: "photo", caption: "say: a photo came" });
  await peer.untilAnswered(1);
  const image = lastBlocks("a photo came").find((block) => block.type === "image");
  assert.equal(image?.source.data, picture.toString("base64"));

  await writeFile(join(cluster.home, "workspace", "out.pdf"), pdf);
  const id = hashOf(pdf);
  const call = JSON.stringify({ text: "here it is", attachments: [{ id, name: "out.pdf" }] });
  const script = `tool: attach {"path":"out.pdf"}\nthen\ntool: message ${call}\nthen\nsay: sent it`;
  peer.say(script);
  const sent = await peer.untilAnswered(4);
  assert.deepEqual(
    sent.slice(1).map(({ text, file }) => [text, file?.kind, file?.name, file && hashOf(file.content)]),
    [
      ["here it is", undefined, undefined, undefined],
      ["", "document", "out.pdf", id],
      ["sent it", undefined, undefined, undefined],
    ],
  );
  const { sessionId } = await say(script, "readers");
  assert.match(await messagesOf(sessionId), new RegExp(`"sent":\\[\\{"sha256":"${id}"`));
});

// design: 001.22
test("sends the transcript to the model and transcribes once when a voice message arrives", async () => {
  const page = Buffer.concat([Buffer.from("OggS"), Buffer.alloc(24), Buffer.from("OpusHead"), Buffer.alloc(64)]);
  const id = await upload(page, "voice");
  await say("say: switched", "voice", [{ id, name: "voice" }]);
  await say("say: still on", "voice");
  const transcripts = cluster.strict?.requests
    .map(({ messages }) => JSON.stringify(messages))
    .filter((messages) => messages.includes(id))
    .map((messages) => messages.split("turn the light on").length - 1);
  assert.deepEqual(transcripts, [1, 1]);
});

test('answers "try again" and stores no file when the blob backend is unavailable', async () => {
  const id = await upload(Buffer.concat([pdf, Buffer.from("%away\n")]), "away.pdf");
  const database = new Client({ connectionString: cluster.databaseUrl });
  await database.connect();
  try {
    // A file of a store with a bucket; this store has none.
    await database.query("UPDATE parley.blobs SET place = 'bucket' WHERE sha256 = $1", [id]);
  } finally {
    await database.end();
  }
  const answer = await client.fetch(`/api/attachments/${id}`);
  assert.equal(answer.status, 503);
  assert.match(answer.headers.get("content-type") ?? "", /^application\/json/);
  assert.equal(answer.headers.get("cache-control")?.includes("immutable") ?? false, false);
  assert.match(await answer.text(), /"code":"unavailable"/);
});
