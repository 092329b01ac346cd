// The fake of WhatsApp is held to what two clients expect that were not written for it.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { Client } from "@great-detail/whatsapp";
import { WhatsAppAPI } from "whatsapp-api-js";
import {
  ActionButtons,
  Body,
  BodyComponent,
  BodyParameter,
  Button,
  Document,
  Image,
  Interactive,
  Language,
  Reaction,
  Template,
  Text,
} from "whatsapp-api-js/messages";
import { startWhatsAppPeer, type WhatsAppPeer } from "../src/peers/whatsapp/index.ts";

const person = "491700000042";
const verifyToken = "verify-me";

function apiFor(peer: WhatsAppPeer, token = peer.token): WhatsAppAPI<Promise<void>> {
  const redirected: typeof fetch = (input, init) => {
    const url = input instanceof Request ? input.url : String(input);
    return fetch(url.replace("https://graph.facebook.com", peer.url), init);
  };
  return new WhatsAppAPI({
    token,
    appSecret: peer.appSecret,
    webhookVerifyToken: verifyToken,
    v: "v24.0",
    ponyfill: { fetch: redirected },
  });
}

function clientFor(peer: WhatsAppPeer): Client {
  return new Client({
    baseUrl: peer.url,
    request: { headers: { Authorization: `Bearer ${peer.token}` }, retry: 0, throwHttpErrors: false },
  });
}

/** A recipient by number only; the client's types also want the newer user id. */
const recipientOf = (phone: string) => ({ phone }) as { phone: string; bsuid: string };
const to = recipientOf(person);

/** The code of a refusal; 0 when the message was accepted. */
async function codeOf(answer: Promise<unknown>): Promise<number> {
  const { error } = (await answer) as { error?: { code: number } };
  return error?.code ?? 0;
}

interface Receiver extends AsyncDisposable {
  url: string;
}

/** A webhook of one of the clients. */
async function receiver(
  handle: (request: { method: string; url: URL; body: string; signature: string }) => Promise<string>,
): Promise<Receiver> {
  const server = createServer((request, response) => {
    void (async () => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const url = new URL(request.url ?? "/", "http://127.0.0.1");
      const signature = String(request.headers["x-hub-signature-256"] ?? "");
      const body = Buffer.concat(chunks).toString();
      const text = await handle({ method: request.method ?? "", url, body, signature }).catch(() => null);
      response.writeHead(text === null ? 500 : 200).end(text ?? "");
    })();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/webhook`,
    [Symbol.asyncDispose]: async () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

test("whatsapp-api-js verifies, reads and answers a message, again until it answers 2xx", async () => {
  await using peer = await startWhatsAppPeer();
  const api = apiFor(peer);
  const seen: string[] = [];
  let failures = 1;
  api.on.message = async ({ message, name, reply, received }) => {
    failures -= 1;
    if (failures >= 0) throw new Error("not now");
    assert.equal(message.type, "text");
    seen.push(`${name}: ${message.type === "text" ? message.text.body : ""}`);
    await received("text");
    await reply(new Text("*pong*"), true, "key-1");
  };
  await using hook = await receiver(async ({ method, url, body, signature }) => {
    if (method === "GET") return api.get(Object.fromEntries(url.searchParams) as never);
    await api.post(JSON.parse(body) as never, body, signature);
    return "";
  });
  await assert.rejects(peer.subscribe(hook.url, "another"), /could not be validated: 500/);
  await peer.subscribe(hook.url, verifyToken);
  const id = peer.say("äöü / 漢字 😀", { name: "Ann" });
  const [sent] = await peer.untilSent(1);
  await peer.until("the acknowledgement", () => (peer.pending === 0 ? true : null));
  assert.deepEqual(seen, ["Ann: äöü / 漢字 😀"]);
  assert.equal(peer.deliveries(id), 2);
  assert.deepEqual([sent?.text, sent?.to, sent?.contextId, sent?.callbackData], ["*pong*", person, id, "key-1"]);
  assert.deepEqual(peer.typing, [id]);
});

test("@great-detail/whatsapp verifies signatures, and refuses a changed body", async () => {
  await using peer = await startWhatsAppPeer();
  const { webhook } = clientFor(peer);
  const texts: string[] = [];
  await using hook = await receiver(async ({ method, url, body, signature }) => {
    if (method === "GET") {
      const registration = await webhook.register({ method, query: Object.fromEntries(url.searchParams), headers: {} });
      return registration.verifyToken === verifyToken ? registration.accept() : "";
    }
    const event = await webhook.eventNotification({
      method,
      query: {},
      body,
      headers: { "x-hub-signature-256": signature },
    });
    await event.verifySignature(peer.appSecret);
    texts.push(JSON.stringify(event.eventNotification));
    return "";
  });
  await peer.subscribe(hook.url, verifyToken);
  peer.batch([peer.message("text", { body: "one" }), peer.message("text", { body: "two é" })]);
  await peer.until("the acknowledgement", () => (peer.pending === 0 ? true : null));
  assert.match(texts.join(), /"one".*"two é"/);
  const { body, signature } = peer.signed({ object: "whatsapp_business_account", entry: [] });
  const changed = await webhook.eventNotification({
    method: "POST",
    query: {},
    body: `${body} `,
    headers: { "x-hub-signature-256": signature },
  });
  await assert.rejects(changed.verifySignature(peer.appSecret));
});

test("both clients upload, send and download media; an address ends", async () => {
  await using peer = await startWhatsAppPeer();
  peer.openWindow(person);
  const [api, client] = [apiFor(peer), clientFor(peer)];
  const form = new FormData();
  form.set("file", new Blob([Buffer.from("ffd8ffe0", "hex")], { type: "image/jpeg" }), "a.jpg");
  const uploaded = await api.uploadMedia(peer.phoneNumberId, form);
  assert.ok("id" in uploaded);
  await api.sendMessage(peer.phoneNumberId, to, new Image(uploaded.id, true, "a *picture*"));
  const pdf = await client.media.upload({
    phoneNumberID: peer.phoneNumberId,
    file: new Blob(["%PDF"], { type: "application/pdf" }),
    filename: "b.pdf",
    mimeType: "application/pdf",
  });
  const { id: pdfId } = await pdf.json<{ id: string }>();
  await api.sendMessage(peer.phoneNumberId, to, new Document(pdfId, true, undefined, "report.pdf"));
  assert.deepEqual(
    peer.sent.map(({ type, text, file }) => [type, text, file?.name, file?.content.toString("hex")]),
    [
      ["image", "a *picture*", "a.jpg", "ffd8ffe0"],
      ["document", "", "report.pdf", "25504446"],
    ],
  );
  const media = await api.retrieveMedia(uploaded.id, peer.phoneNumberId);
  assert.ok("url" in media);
  assert.equal(Buffer.from(await (await api.fetchMedia(media.url)).arrayBuffer()).toString("hex"), "ffd8ffe0");
  assert.equal((await fetch(media.url)).status, 401, "only with the token");
  peer.expireMedia();
  assert.equal((await api.fetchMedia(media.url)).status, 404);
  const large = new FormData();
  large.set("file", new Blob([Buffer.alloc(5 * 1024 * 1024 + 1)], { type: "image/png" }), "c.png");
  assert.equal(await codeOf(api.uploadMedia(peer.phoneNumberId, large, false)), 131053);
  const archive = new FormData();
  archive.set("file", new Blob(["PK"], { type: "application/zip" }), "d.zip");
  assert.equal(await codeOf(api.uploadMedia(peer.phoneNumberId, archive, false)), 100);
});

test("a button of whatsapp-api-js is pressed, and limits of texts and buttons hold", async () => {
  await using peer = await startWhatsAppPeer();
  peer.openWindow(person);
  const api = apiFor(peer);
  const pressed: unknown[] = [];
  api.on.message = async ({ message }) => {
    pressed.push(message.type === "interactive" ? message.interactive : message.type);
  };
  await using hook = await receiver(async ({ body, signature }) => {
    await api.post(JSON.parse(body) as never, body, signature);
    return "";
  });
  const buttons = new ActionButtons(new Button("/yes", "Yes"), new Button("/no", "No"));
  await api.sendMessage(peer.phoneNumberId, to, new Interactive(buttons, new Body("Sure?")));
  peer.webhook(hook.url);
  peer.press(peer.sent[0]?.id ?? "", "No");
  await peer.until("the press", () => (peer.pending === 0 ? true : null));
  assert.deepEqual(pressed, [{ type: "button_reply", button_reply: { id: "/no", title: "No" } }]);

  const raw = (message: object) =>
    codeOf(
      clientFor(peer)
        .message.createMessage({ phoneNumberID: peer.phoneNumberId, to: person, ...message } as never)
        .then((response) => response.json()),
    );
  const reply = (id: string, title: string) => ({ type: "reply", reply: { id, title } });
  const choice = (list: object[], text = "x") => ({
    type: "interactive",
    interactive: { type: "button", body: { text }, action: { buttons: list } },
  });
  assert.equal(await raw({ type: "text", text: { body: "a".repeat(4_096) } }), 0);
  assert.equal(await raw({ type: "text", text: { body: "a".repeat(4_097) } }), 100);
  assert.equal(await raw({ type: "text", text: { body: "" } }), 100);
  assert.equal(await raw(choice([reply("1", "x".repeat(21))])), 100);
  assert.equal(await raw(choice([reply("1", "a"), reply("2", "b"), reply("3", "c"), reply("4", "d")])), 100);
  assert.equal(await raw(choice([reply("1", "a"), reply("2", "a")])), 131009);
  assert.equal(await raw(choice([reply("1", "a")], "x".repeat(1_025))), 100);
  assert.equal(await raw({ type: "poll", poll: {} }), 131051);
});

test("a message outside of the window needs a template, and fails immediately or by a status", async () => {
  await using peer = await startWhatsAppPeer();
  const api = apiFor(peer);
  const failed: unknown[] = [];
  api.on.status = async ({ status, error, biz_opaque_callback_data: key }) =>
    void failed.push([status, error?.code, key]);
  await using hook = await receiver(async ({ body, signature }) => {
    await api.post(JSON.parse(body) as never, body, signature);
    return "";
  });
  const send = (message: Text | Template) => api.sendMessage(peer.phoneNumberId, to, message, undefined, "k");
  const template = (text: string) =>
    new Template("answer", new Language("en_US"), new BodyComponent(new BodyParameter(text)));
  assert.equal(await codeOf(send(new Text("late"))), 131047);
  assert.equal(await codeOf(send(template("a"))), 132001);
  peer.approveTemplate("answer", "en_US", 1);
  assert.equal(await codeOf(send(template("two\nlines"))), 132018);
  assert.equal(await codeOf(send(template("one line"))), 0);
  assert.deepEqual(peer.sent[0]?.template, { name: "answer", language: "en_US", parameters: ["one line"] });
  peer.webhook(hook.url);
  peer.endWindow(person, "status");
  assert.equal(await codeOf(send(new Text("later"))), 0);
  await peer.until("the status", () => (failed.length > 0 && peer.pending === 0 ? true : null));
  assert.deepEqual(failed, [["failed", 131047, "k"]]);
  assert.equal(peer.sent.length, 1);
});

test("both clients read refusals, limits and cut connections as what they are", async () => {
  await using peer = await startWhatsAppPeer();
  peer.openWindow(person);
  const api = apiFor(peer);
  const send = (recipient = to) => api.sendMessage(peer.phoneNumberId, recipient, new Text("a"));
  assert.equal(await codeOf(apiFor(peer, "wrong").sendMessage(peer.phoneNumberId, to, new Text("a"))), 190);
  assert.equal(await codeOf(send(recipientOf("nobody"))), 131009);
  peer.fail("messages", { kind: "error", code: 131056 });
  assert.equal(await codeOf(send()), 131056);
  peer.fail("messages", { kind: "error", code: 130429, retryAfterSeconds: 3 });
  const flood = await clientFor(peer).message.createMessage({
    phoneNumberID: peer.phoneNumberId,
    to: person,
    type: "text",
    text: { body: "a" },
  } as never);
  assert.deepEqual([flood.status, flood.headers.get("retry-after")], [429, "3"]);
  assert.equal(peer.sent.length, 0);
  peer.fail("messages", { kind: "reset_after_commit" });
  await assert.rejects(api.sendMessage(peer.phoneNumberId, to, new Text("b"), undefined, "same"));
  await api.sendMessage(peer.phoneNumberId, to, new Text("b"), undefined, "same");
  assert.deepEqual([peer.sent.length, peer.duplicates], [2, 1], "the one that was cut off did arrive");
  assert.equal(await codeOf(api.markAsRead(peer.phoneNumberId, "wamid.unknown")), 131009);
  const id = peer.say("hi");
  assert.equal(await codeOf(api.markAsRead(peer.phoneNumberId, id)), 0);
  await api.sendMessage(peer.phoneNumberId, to, new Reaction(id, "👀"));
  assert.deepEqual([peer.sent[2]?.reaction, peer.read.has(id)], [{ messageId: id, emoji: "👀" }, true]);
});
