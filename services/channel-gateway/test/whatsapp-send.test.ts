// What the WhatsApp adapter sends, and what each answer of the platform means.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startWhatsAppPeer, type WhatsAppPeer } from "@parley/testing";
import type { ChannelAdapter, OutboundPart, SendOutcome } from "../src/channels/channel.ts";
import { uploadOf } from "../src/channels/whatsapp/send.ts";
import { sendAnswer } from "./support/parts.ts";
import { serveWhatsApp, whatsappAdapter } from "./support/whatsapp.ts";

const person = "491700000042";
let peer: WhatsAppPeer;
let adapter: ChannelAdapter;

before(async () => {
  peer = await startWhatsAppPeer();
  adapter = whatsappAdapter(peer);
  peer.openWindow(person);
});
after(() => peer.close());

const soon = () => AbortSignal.timeout(60_000);
const address = { channel: "whatsapp", account: "main", conversation: person };
const part = (text: string, more: Partial<OutboundPart> = {}): OutboundPart => ({
  address,
  text: { text, plain: text, ranges: [] },
  idempotencyKey: "turn-1:0",
  attempts: 0,
  ...more,
});

async function outcome(of: OutboundPart = part("a"), from = adapter): Promise<SendOutcome> {
  return from.send(of, soon());
}

test("sends formatted text with its key, and a reply only where an address has one", async () => {
  const count = peer.sent.length;
  const to = { ...address, replyToId: "wamid.AAA" };
  await sendAnswer(adapter, to, "**bold** _it_ ~~no~~ `code` [link](https://a.example)\n\n- one\n\n> said", soon());
  const [sent] = peer.sent.slice(count);
  assert.equal(sent?.text, "*bold* _it_ ~no~ `code` link (https://a.example)\n\n• one\n\n> said");
  assert.deepEqual([sent?.to, sent?.contextId, sent?.callbackData], [person, "wamid.AAA", "turn-1:0-0"]);
});

test("sends people without a number by user id, and groups by their id", async () => {
  peer.openWindow("DE.1349");
  const user = await outcome(part("hi", { address: { ...address, conversation: "DE.1349" } }));
  const group = await outcome(part("hi", { address: { ...address, conversation: "group:Y2Fw==" } }));
  assert.deepEqual([user.state, group.state], ["sent", "sent"]);
  assert.deepEqual(
    peer.sent.slice(-2).map(({ to, toGroup }) => [to, toGroup]),
    [
      ["DE.1349", false],
      ["Y2Fw==", true],
    ],
  );
  assert.equal((await outcome(part("hi", { address: { ...address, conversation: "group:../x" } }))).state, "dropped");
});

test("shows up to three short buttons, a list for more, and otherwise only the text", async () => {
  const shown = async (labels: readonly string[], text = "Sure?") => {
    const actions = labels.map((label, index) => ({ label, input: `/answer ${index}` }));
    assert.equal((await outcome(part(text, { actions }))).state, "sent");
    const { type, buttons } = peer.sent.at(-1) ?? {};
    const body = peer.calls.at(-1)?.body as { interactive?: { type: string } };
    return [type, body.interactive?.type, buttons?.map(({ title }) => title)];
  };
  assert.deepEqual(await shown(["Yes", "No"]), ["interactive", "button", ["Yes", "No"]]);
  assert.deepEqual(await shown(["A", "B", "C", "D"]), ["interactive", "list", ["A", "B", "C", "D"]]);
  assert.deepEqual(await shown(["x".repeat(21)]), ["interactive", "list", ["x".repeat(21)]]);
  assert.deepEqual(await shown(["Yes"], "x".repeat(1_025)), ["interactive", "list", ["Yes"]]);
  assert.deepEqual(await shown(["x".repeat(25)]), ["text", undefined, []]);
  assert.deepEqual(await shown(["Same", "Same"]), ["text", undefined, []]);
});

test("uploads files and shows pictures, sound, video and documents as such", async () => {
  const sent = async (name: string, mediaType: string, content = Buffer.from("abc")) => {
    const result = await outcome({ ...part(""), text: null, file: { name, mediaType, content } });
    const { type, file } = peer.sent.at(-1) ?? {};
    return result.state === "sent" ? [type, file?.mediaType, file?.name, file?.content.length] : result.state;
  };
  assert.deepEqual(await sent("a.jpg", "image/jpeg"), ["image", "image/jpeg", "a.jpg", 3]);
  assert.deepEqual(await sent("a.ogg", "application/ogg"), ["audio", "audio/ogg", "a.ogg", 3]);
  assert.deepEqual(await sent("a.mp4", "video/mp4"), ["video", "video/mp4", "a.mp4", 3]);
  assert.deepEqual(await sent("ä.pdf", "application/pdf"), ["document", "application/pdf", "ä.pdf", 3]);
  assert.deepEqual(await sent("a.md", "text/markdown"), ["document", "text/plain", "a.md", 3]);
  assert.equal(await sent("a.zip", "application/zip"), "dropped");
  const large = { name: "b.png", mediaType: "image/png", content: Buffer.alloc(5 * 1024 * 1024 + 1) };
  assert.equal(uploadOf(large), null, "a picture above the limit is accepted in no form");
});

test("reports retry, with what is limited, when a message certainly did not arrive", async () => {
  const count = peer.sent.length;
  const retried = async (code: number, attempts = 0, retryAfterSeconds?: number) => {
    peer.fail("messages", { kind: "error", code, ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }) });
    const result = await outcome(part("a", { attempts }));
    return result.state === "retry" ? [result.afterMs, result.scope] : result.state;
  };
  assert.deepEqual(await retried(131056), [6_000, "conversation"]);
  assert.deepEqual(await retried(131056, 2), [24_000, "conversation"]);
  assert.deepEqual(await retried(130429, 0, 7), [7_000, "account"]);
  assert.deepEqual(await retried(4), [60_000, "account"]);
  assert.deepEqual(await retried(190), [60_000, "account"]);
  assert.deepEqual(await retried(131000), [1_000, undefined]);
  assert.equal(await retried(131026), "dropped");
  assert.equal(await retried(131030), "dropped");
  peer.fail("messages", { kind: "reset_before_commit" });
  assert.equal((await outcome()).state, "unknown", "a broken connection tells nothing");
  assert.equal(peer.sent.length, count);
  const closed = await startWhatsAppPeer();
  await closed.close();
  const away = whatsappAdapter(closed);
  assert.equal((await outcome(part("a"), away)).state, "retry");
});

test("reports unknown when the platform accepted a message without an answer", async () => {
  const count = peer.sent.length;
  peer.fail("messages", { kind: "reset_after_commit" });
  assert.equal((await outcome()).state, "unknown");
  peer.fail("messages", { kind: "hang_after_commit" });
  const hanging = new AbortController();
  const sending = adapter.send(part("a"), hanging.signal);
  await peer.untilSent(count + 2);
  hanging.abort();
  assert.equal((await sending).state, "unknown");
  assert.equal(peer.sent.length, count + 2);
  const file = { name: "a.pdf", mediaType: "application/pdf", content: Buffer.from("x") };
  peer.fail("upload", { kind: "reset_after_commit" });
  assert.equal((await outcome({ ...part(""), text: null, file })).state, "retry", "nobody has seen an upload");
});

test("drops an answer after the 24-hour window with a reason when there is no template", async () => {
  const late = part("late", { address: { ...address, conversation: "491700000050" } });
  assert.deepEqual(await outcome(late), {
    state: "dropped",
    reason: "the person's last message is older than 24 hours, and no template is configured",
  });
});

test("sends the template after the window, whole if it fits and cut otherwise", async () => {
  peer.approveTemplate("answer", "en_US", 1);
  peer.approveTemplate("ping", "de", 0);
  const withTemplate = whatsappAdapter(peer, { template: "answer" });
  const to = { ...address, conversation: "491700000051" };
  assert.equal((await outcome(part("two\n\nlines", { address: to }), withTemplate)).state, "sent");
  assert.deepEqual(peer.sent.at(-1)?.template?.parameters, ["two lines"]);
  const long = await outcome(part("x".repeat(2_000), { address: to }), withTemplate);
  assert.match("reason" in long ? long.reason : "", /only the template answer was sent/);
  assert.equal(peer.sent.at(-1)?.template?.parameters[0]?.length, 1_024);
  const context = JSON.stringify({ messageId: "wamid.old", sentAtMs: Date.now() - 25 * 60 * 60 * 1_000 });
  const calls = peer.calls.length;
  await outcome(part("known to be late", { address: { ...to, context } }), withTemplate);
  assert.equal(peer.calls.length, calls + 1, "the platform was not asked first");
  const asking = whatsappAdapter(peer, { template: "ping", template_language: "de", template_has_text: false });
  assert.equal((await outcome(part("a", { address: to }), asking)).state, "dropped");
  assert.deepEqual(peer.sent.at(-1)?.template, { name: "ping", language: "de", parameters: [] });
  const wrong = whatsappAdapter(peer, { template: "missing" });
  assert.equal((await outcome(part("a", { address: to }), wrong)).state, "dropped");
});

test("sends the template once when the platform reports the end of the window later", async () => {
  await using late = await serveWhatsApp({ template: "answer" });
  late.peer.approveTemplate("answer", "en_US", 1);
  late.peer.endWindow(person, "status");
  const first = await late.adapter.send(part("the answer"), soon());
  assert.equal(first.state, "sent", "the platform accepts it");
  const [sent] = await late.peer.untilSent(1);
  assert.deepEqual([sent?.type, sent?.template?.parameters], ["template", ["the answer"]]);
  await late.peer.until("acknowledgement", () => (late.peer.pending === 0 ? true : null));
  const errors = [{ code: 131047, title: "Re-engagement message", message: "" }];
  late.peer.status({ id: "wamid.t", to: person, status: "failed", errors, callbackData: sent?.callbackData ?? null });
  await late.peer.until("acknowledgement", () => (late.peer.pending === 0 ? true : null));
  assert.equal(late.peer.sent.length, 1, "a failed template is not followed by another");
});

test("reacts to a message and removes the reaction", async () => {
  const react = (reaction: string | null) => adapter.react?.(address, "wamid.AAA", reaction, soon());
  assert.equal((await react("👀"))?.state, "sent");
  assert.equal((await react(null))?.state, "sent");
  assert.deepEqual(
    peer.sent.slice(-2).map(({ reaction }) => reaction),
    [
      { messageId: "wamid.AAA", emoji: "👀" },
      { messageId: "wamid.AAA", emoji: "" },
    ],
  );
});
