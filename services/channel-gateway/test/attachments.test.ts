// Inbound and outbound files of a gateway, on a real store and a strict Telegram peer.
import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { WebSocket } from "ws";
import { storeBlob, type Bus } from "@parley/bus";
import { parseSettings } from "@parley/chassis";
import { attachmentName, textOf, type Attachment, type Part } from "@parley/contracts";
import { Cleanup, startTelegramPeer, temporaryFolder, type TelegramPeer } from "@parley/testing";
import { Platform } from "./support/platform.ts";
import { startGatewayStack, token, type GatewayStack, type Replica } from "./support/stack.ts";

let stack: GatewayStack;
let api: Replica;
let bus: Bus;
/** The limit of the gateway `api`: several chunks. */
const maxBytes = 2_000_000;
/** The attachments of the answer to a text. */
const outgoing = new Map<string, Attachment[]>();

const hashOf = (content: Uint8Array) => createHash("sha256").update(content).digest("hex");
const pdf = (text: string) => Buffer.from(`%PDF-1.4\n% ${text}\n1 0 obj\n<<>>\nendobj\ntrailer <<>>\n%%EOF\n`);
const blobsIn = (parts: readonly Part[]) => parts.filter((part) => part.type === "blob");
const notesIn = (parts: readonly Part[]) => parts.slice(1).flatMap((part) => (part.type === "text" ? [part.text] : []));

/** The parts of the received message whose text begins with `word`. */
const heard = (word: string): Part[] | undefined =>
  stack.agent.heardParts.find(([first]) => first?.type === "text" && first.text.startsWith(word));

async function gatewayFor(peer: TelegramPeer, account: string, more = "", queue = ""): Promise<Replica> {
  const settings = [
    `[session]\npolicy = "per_conversation"\n[queue]\nmode = "queue"\n${queue}`,
    `[channels.telegram.${account}]\ntoken_env = "PARLEY_CHANNEL_BOT"\napi_root = "${peer.url}"\nowners = ["42"]\ndm_policy = "allowlist"`,
    more,
  ];
  return stack.gateway({
    name: account,
    config: {
      settings: parseSettings(settings.join("\n"), "test"),
      channelSecrets: new Map([
        ["PARLEY_CHANNEL_BOT", peer.token],
        ["PARLEY_CHANNEL_HOOK", "hook-secret_1"],
      ]),
    },
  });
}

const upload = (body: Uint8Array, name?: string, type = "application/octet-stream") =>
  fetch(`${api.url}/api/attachments${name === undefined ? "" : `?name=${encodeURIComponent(name)}`}`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": type },
    body: new Uint8Array(body),
  });

// Limited concurrency: otherwise the tests wait for each other.
describe("files", { concurrency: 3 }, () => {
  before(async () => {
    stack = await startGatewayStack();
    const settings = parseSettings(`[attachments]\nmax_bytes = ${maxBytes}`, "test");
    api = await stack.gateway({ name: "api", config: { settings } });
    bus = await stack.stack.bus("channel-gateway");
    stack.agent.script = (said) => ({ deltas: ["here"], attachments: outgoing.get(said) ?? [] });
  });
  after(() => stack[Symbol.asyncDispose]());

  test("passes a document with its caption and detected type to the agent", async () => {
    await using peer = await startTelegramPeer();
    const content = pdf("a report");
    const fields = { file_name: "../..\\evil\u202Efdp.exe", mime_type: "image/png" };
    peer.sendFile(content, { kind: "document", caption: "report: read this", fields });
    await gatewayFor(peer, "document");
    await peer.untilSent(1);
    assert.deepEqual(heard("report:"), [
      { type: "text", text: "report: read this" },
      {
        type: "blob",
        sha256: hashOf(content),
        mediaType: "application/pdf",
        name: "evilfdp.exe",
        bytes: content.length,
      },
    ]);
    const kept = await api.call(`/api/attachments/${hashOf(content)}`);
    assert.deepEqual(Buffer.from(await kept.arrayBuffer()), content);
  });

  test("never fetches files of unknown senders or of unaddressed group messages", async () => {
    await using peer = await startTelegramPeer();
    peer.sendFile(pdf("strange"), { kind: "document", caption: "open me" }, { from: 99 });
    peer.sendFile(pdf("aside"), { kind: "document", caption: "for the others" }, { from: 99, chat: -1001 });
    peer.say("unknown: done");
    await gatewayFor(peer, "unknown", "");
    await peer.untilSent(1);
    assert.deepEqual(
      peer.calls.filter(({ method }) => method === "getFile" || method === "file"),
      [],
    );
  });

  test("stores a message with a note when a file is too large or cannot be fetched", async () => {
    await using peer = await startTelegramPeer();
    const limit = "[attachments]\nmax_bytes = 1000";
    peer.sendFile(pdf("x"), { kind: "video", caption: "large: 1", fields: { file_size: 30_000_000 } });
    // The platform reports a wrong size.
    peer.sendFile(randomBytes(2_000), { kind: "document", caption: "large: 2", fields: { file_size: 10 } });
    peer.sendFile(randomBytes(10), { kind: "audio", caption: "large: 3", fields: { file_id: "unknown" } });
    await gatewayFor(peer, "large", limit);
    await peer.untilSent(3);
    const said = stack.agent.heardParts.filter(([first]) => first?.type === "text" && first.text.startsWith("large:"));
    assert.deepEqual(said.flatMap(blobsIn), []);
    assert.deepEqual(said.map(notesIn), [
      ['[the video "video" is missing from this message: it is larger than 1000 bytes]'],
      ['[the document "document" is missing from this message: it is larger than 1000 bytes]'],
      ['[the audio "audio" is missing from this message: it could not be fetched]'],
    ]);
  });

  test("fetches a file again when a transfer breaks, and adds a note without the token in the end", async () => {
    await using peer = await startTelegramPeer();
    for (const fault of ["reset_after_commit", "server_error"] as const) peer.fail("file", { kind: fault });
    peer.sendFile(randomBytes(300_000), { kind: "photo", caption: "broken: 1" });
    await gatewayFor(peer, "broken");
    await peer.untilSent(1);
    for (const fault of ["reset_after_commit", "server_error", "reset_before_commit"] as const)
      peer.fail("file", { kind: fault });
    peer.sendFile(randomBytes(10), { kind: "voice", caption: "broken: 2" });
    await peer.untilSent(2);
    const said = stack.agent.heardParts.filter(([first]) => first?.type === "text" && first.text.startsWith("broken:"));
    assert.deepEqual(
      said.map((parts) => [notesIn(parts).length, blobsIn(parts).length]),
      [
        [0, 1],
        [1, 0],
      ],
    );
    assert.ok(!JSON.stringify(said).includes(peer.token));
  });

  test("acknowledges a message before its file is fetched, and keeps a later text behind it", async () => {
    await using peer = await startTelegramPeer();
    const content = randomBytes(2_000_000);
    const download = Promise.withResolvers<void>();
    peer.fail("file", { kind: "hold", until: download.promise });
    const webhook = 'mode = "webhook"\nwebhook_secret_env = "PARLEY_CHANNEL_HOOK"';
    const { url } = await gatewayFor(peer, "webhook", webhook);
    await fetch(`${peer.url}/bot${peer.token}/setWebhook`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ url: `${url}/channels/telegram/webhook/webhook`, secret_token: "hook-secret_1" }),
    });
    peer.sendFile(content, { kind: "document", caption: "webhook: photo" });
    peer.say("webhook: text");
    // Telegram removes an update when its delivery was answered.
    await peer.until("both updates to be acknowledged", () => (peer.pending === 0 ? true : null));
    await peer.untilCalls("file", 1);
    await stack.agent.idle();
    assert.equal(heard("webhook:"), undefined);
    download.resolve();
    await peer.untilSent(2);
    const said = stack.agent.heardParts.filter(
      ([first]) => first?.type === "text" && first.text.startsWith("webhook:"),
    );
    assert.deepEqual(
      said.map((parts) => [textOf(parts), blobsIn(parts).map(({ sha256 }) => sha256)]),
      [
        ["webhook: photo", [hashOf(content)]],
        ["webhook: text", []],
      ],
    );
  });

  test("fetches on another replica when a gateway is killed between the commit and the fetch", async () => {
    await using cleanup = new Cleanup();
    const peer = await startTelegramPeer();
    cleanup.add(() => peer.close());
    const folder = await temporaryFolder(cleanup);
    const config = join(folder, "parley.toml");
    await writeFile(
      config,
      `[session]\npolicy = "per_conversation"\n[channels.telegram.crash]\ntoken_env = "PARLEY_CHANNEL_BOT"\napi_root = "${peer.url}"\nowners = ["42"]\n`,
    );
    await writeFile(join(folder, "files.before_fetch"), "kill");
    const content = pdf("crash");
    const update = peer.sendFile(content, { kind: "document", caption: "crash: me" });
    const child = fork(new URL("../src/main.ts", import.meta.url), {
      execArgv: ["--conditions=@parley/source"],
      stdio: ["ignore", "ignore", "inherit", "ipc"],
      env: {
        PATH: process.env["PATH"] ?? "",
        NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"] ?? "",
        PARLEY_NATS_URL: stack.stack.nats.urlFor("channel-gateway"),
        PARLEY_REPLICA: "crash",
        PARLEY_HTTP_PORT: "0",
        PARLEY_TOKEN: token,
        PARLEY_CONFIG: config,
        PARLEY_CHANNEL_BOT: peer.token,
        FAULT_DIR: folder,
      },
    });
    cleanup.add(async () => void child.kill("SIGKILL"));
    await once(child, "exit");
    assert.equal(child.signalCode, "SIGKILL");
    assert.equal(heard("crash:"), undefined);
    assert.equal(peer.calls.filter(({ method }) => method === "file").length, 0);
    await gatewayFor(peer, "crash");
    await peer.untilSent(1);
    // The message was stored, so the platform delivered it once.
    assert.equal(peer.deliveries(update), 1);
    const messages = stack.agent.heardParts.filter(([first]) => first?.type === "text" && first.text === "crash: me");
    assert.deepEqual(
      messages.map((parts) => blobsIn(parts).map(({ sha256 }) => sha256)),
      [[hashOf(content)]],
    );
  });

  test("answers an album once, with all its pictures", async () => {
    await using peer = await startTelegramPeer();
    const pictures = [pdf("one"), pdf("two"), pdf("three")];
    for (const [index, picture] of pictures.entries()) {
      const caption = index === 0 ? { caption: "album: look" } : {};
      peer.sendFile(picture, { kind: "document", ...caption }, { fields: { media_group_id: "7" } });
    }
    // Parts of one batch are not limited by the coalescing window, however long a download takes.
    await gatewayFor(peer, "album", "", "window_ms = 1");
    await peer.untilSent(1);
    await stack.agent.idle();
    const hashes = pictures.map(hashOf);
    assert.deepEqual(
      stack.agent.heardParts
        .flatMap(blobsIn)
        .map(({ sha256 }) => sha256)
        .filter((sha256) => hashes.includes(sha256)),
      hashes,
    );
    assert.equal(peer.sent.length, 1);
  });

  test("sends the files of an answer after its text, in order, and pictures as photos", async () => {
    await using peer = await startTelegramPeer();
    const picture = Buffer.concat([Buffer.from("ffd8ffe000104a46494600010100000100010000", "hex"), randomBytes(500)]);
    const report = pdf("out");
    const attachments: Attachment[] = [
      { ...(await storeBlob(bus, picture)), name: "a.jpg" },
      { ...(await storeBlob(bus, report)), name: "report.pdf" },
    ];
    outgoing.set("files: please", attachments);
    peer.say("files: please");
    await gatewayFor(peer, "outgoing");
    const sent = await peer.untilSent(3);
    assert.deepEqual(
      sent.map(({ text, file }) => [text, file?.kind, file?.name, file === undefined ? "" : hashOf(file.content)]),
      [
        ["here", undefined, undefined, ""],
        ["", "photo", "a.jpg", hashOf(picture)],
        ["", "document", "report.pdf", hashOf(report)],
      ],
    );
  });

  test("names a file in a text when the channel cannot send files", async () => {
    const platform = new Platform("plain");
    const attachments = [{ ...(await storeBlob(bus, pdf("plain"))), name: "plain.pdf" }];
    outgoing.set("plain: files", attachments);
    await stack.gateway({
      name: "plain",
      config: { settings: parseSettings('[session]\npolicy = "per_conversation"', "test") },
      overrides: { accounts: [platform.account({ owners: ["boss"] }, "plain")] },
    });
    platform.say({ conversation: "boss", from: "boss", text: "plain: files" });
    await platform.until(() => platform.sent.length === 2);
    assert.match(platform.sent[1]?.text ?? "", /^\[file: plain\.pdf, \d+ bytes; this channel cannot send files\]$/);
  });

  test("returns an uploaded file as a download that no browser executes", async () => {
    const page = Buffer.from("<html><script>alert(1)</script></html>");
    const name = 'a"b\r\nSet-Cookie: x=1;\u202e/..\\"é世.html';
    const kept = await upload(page, name, "text/html");
    assert.equal(kept.status, 201);
    const about = (await kept.json()) as Attachment;
    assert.deepEqual(about, {
      sha256: hashOf(page),
      mediaType: "text/plain",
      name: attachmentName(name, "file"),
      bytes: page.length,
    });
    const given = await api.call(`/api/attachments/${about.sha256}?name=${encodeURIComponent(name)}`);
    assert.equal(given.status, 200);
    assert.equal(given.headers.get("content-type")?.split(";")[0], "text/plain");
    assert.equal(given.headers.get("x-content-type-options"), "nosniff");
    assert.match(given.headers.get("content-security-policy") ?? "", /sandbox/);
    assert.match(given.headers.get("content-disposition") ?? "", /^attachment; filename\*=UTF-8''[\w%.!~-]+$/);
    assert.equal(given.headers.get("set-cookie"), null);
    assert.deepEqual(Buffer.from(await given.arrayBuffer()), page);
  });

  test("accepts files up to the limit and refuses larger or empty ones, invalid tokens and invalid hashes", async () => {
    const largest = randomBytes(maxBytes);
    const kept = await upload(largest);
    assert.equal(kept.status, 201);
    const given = await api.call(`/api/attachments/${hashOf(largest)}`);
    assert.equal(hashOf(Buffer.from(await given.arrayBuffer())), hashOf(largest));
    assert.equal((await upload(Buffer.alloc(maxBytes + 1))).status, 413);
    assert.equal((await upload(Buffer.alloc(0))).status, 400);
    const stranger = { method: "POST", body: "x" };
    assert.equal((await fetch(`${api.url}/api/attachments`, stranger)).status, 401);
    assert.equal((await fetch(`${api.url}/api/attachments/${hashOf(largest)}`)).status, 401);
    assert.equal((await api.call("/api/attachments/..%2f..%2fetc%2fpasswd")).status, 400);
    assert.equal((await api.call(`/api/attachments/${"0".repeat(64)}`)).status, 404);
  });

  test("resolves attachments by hash with type and size from the store, and refuses unknown ones", async () => {
    const content = pdf("api");
    await upload(content, "api.pdf");
    const attachments = [{ id: hashOf(content), name: "api.pdf" }];
    const said = await api.call("/api/messages", { body: { text: "api: read", conversation: "c1", attachments } });
    assert.equal(said.status, 202);
    const silent = await api.call("/api/messages", { body: { conversation: "c2", attachments } });
    assert.equal(silent.status, 202);
    const withContent = (parts: readonly Part[]) => blobsIn(parts).some(({ sha256 }) => sha256 === hashOf(content));
    await stack.agent.answered((parts) => parts.length === 2 && withContent(parts));
    await stack.agent.answered((parts) => parts.length === 1 && withContent(parts));
    const expected = {
      type: "blob",
      sha256: hashOf(content),
      mediaType: "application/pdf",
      name: "api.pdf",
      bytes: content.length,
    };
    const { sessionId } = (await said.json()) as { sessionId: string };
    const { messages } = await api.json<{ messages: { role: string; parts: Part[] }[] }>(
      `/api/sessions/${sessionId}/messages`,
    );
    const parts = messages.filter(({ role }) => role === "user").map((message) => message.parts);
    assert.deepEqual(parts.filter(withContent), [[{ type: "text", text: "api: read" }, expected], [expected]]);
    const ghost = { text: "x", attachments: [{ id: hashOf(Buffer.from("ghost")) }] };
    const refused = await api.call("/api/messages", { body: ghost });
    assert.equal(refused.status, 400);
    assert.match(await refused.text(), /no_such_attachment/);
    assert.equal((await api.call("/api/messages", { body: { text: "" } })).status, 400);
    const many = Array.from({ length: 11 }, () => attachments[0]);
    assert.equal((await api.call("/api/messages", { body: { text: "x", attachments: many } })).status, 400);
  });

  test("resolves attachments by hash over a WebSocket", async () => {
    const content = pdf("ws");
    await upload(content);
    const socket = new WebSocket(`${api.url.replace("http", "ws")}/api/ws`, {
      headers: { authorization: `Bearer ${token}` },
    });
    await once(socket, "open");
    const frame = {
      type: "message",
      id: "1",
      text: "ws: read",
      attachments: [{ id: hashOf(content), name: "ws.pdf" }],
    };
    socket.send(JSON.stringify(frame));
    const [answer] = (await once(socket, "message")) as [Buffer];
    assert.equal((JSON.parse(answer.toString()) as { type: string }).type, "accepted");
    socket.send(JSON.stringify({ type: "message", id: "2", text: "" }));
    const [empty] = (await once(socket, "message")) as [Buffer];
    assert.equal((JSON.parse(empty.toString()) as { type: string }).type, "error");
    socket.close();
    await stack.agent.answered(([first]) => first?.type === "text" && first.text === "ws: read");
    assert.equal(blobsIn(heard("ws:") ?? [])[0]?.name, "ws.pdf");
  });
});
