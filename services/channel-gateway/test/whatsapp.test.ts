// What the WhatsApp adapter does with deliveries: verification, signatures, batches, kinds of messages, presses, changes and statuses.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import fc from "fast-check";
import type { InboundDraft } from "../src/channels/channel.ts";
import { parseMessage } from "../src/channels/whatsapp/parse.ts";
import { Delivery, valuesOf } from "../src/channels/whatsapp/update-schema.ts";
import { serveWhatsApp, verifyToken, type ServedWhatsApp } from "./support/whatsapp.ts";

const person = "491700000042";
let served: ServedWhatsApp;

before(async () => {
  served = await serveWhatsApp();
});
after(() => served[Symbol.asyncDispose]());

const acknowledged = () => served.peer.until("acknowledgement", () => (served.peer.pending === 0 ? true : null));

/** The draft of the next message. */
async function draftAfter(send: () => unknown): Promise<InboundDraft> {
  const count = served.host.accepted.length;
  send();
  const draft = (await served.host.untilAccepted(count + 1))[count];
  assert.ok(draft);
  return draft;
}

async function post(body: string, headers: Record<string, string>): Promise<number> {
  const response = await fetch(served.url, { method: "POST", headers, body });
  return response.status;
}

test("verifies its address only with the token and repeats only plain challenges", async () => {
  await assert.rejects(served.peer.subscribe(served.url, "wrong"), /403/);
  const ask = (challenge: string) =>
    fetch(
      `${served.url}?hub.mode=subscribe&hub.verify_token=${verifyToken}&hub.challenge=${encodeURIComponent(challenge)}`,
    );
  assert.equal((await ask("<script>")).status, 403);
  const answer = await ask("1158201444");
  assert.deepEqual([await answer.text(), answer.headers.get("content-type")], ["1158201444", "text/plain"]);
});

test("turns a direct message into a draft with its person, time and address", async () => {
  const draft = await draftAfter(() => served.peer.say("good morning ä 😀", { name: "Ann" }));
  const { externalId, replyTo, sentAt, ...rest } = draft;
  assert.deepEqual(rest, {
    conversation: person,
    contact: { id: person, name: "Ann" },
    direct: true,
    addressed: true,
    text: "good morning ä 😀",
  });
  assert.ok(Math.abs(Date.now() - Date.parse(sentAt ?? "")) < 60_000);
  assert.deepEqual(
    { ...replyTo, context: "" },
    { channel: "whatsapp", account: "main", conversation: person, context: "" },
  );
  await served.adapter.typing?.(replyTo);
  assert.deepEqual([served.peer.typing.at(-1), served.peer.read.has(externalId)], [externalId, true]);
});

test("stores all messages of a delivery in order and acknowledges it only then", async () => {
  const { peer, host } = served;
  const before = host.accepted.length;
  const messages = ["one", "two", "three"].map((body) => peer.message("text", { body }));
  const more = peer.message("text", { body: "four" }, { from: "491700000043" });
  host.refuseNext();
  peer.batch([...messages, more]);
  await acknowledged();
  assert.deepEqual(host.texts.slice(before), ["one", "two", "three", "four"]);
  assert.equal(peer.deliveries(messages[0]?.id ?? ""), 2, "the whole delivery came again");
  const count = host.accepted.length;
  peer.batch(messages, { together: true });
  await acknowledged();
  assert.equal(host.accepted.length, count, "a repeated delivery is a duplicate");
});

test("ignores a delivery for another number", async () => {
  const { peer, host } = served;
  const attempts = host.attempts;
  peer.batch([peer.message("text", { body: "not for us" })], { phoneNumberId: "999999999999" });
  await acknowledged();
  assert.equal(host.attempts, attempts);
  await host.untilLogged(/for another number/);
});

test("refuses forged, changed and unsigned deliveries and ignores stale messages", async () => {
  const { peer, host } = served;
  const attempts = host.attempts;
  const value = { metadata: { phone_number_id: peer.phoneNumberId, display_phone_number: "1" } };
  const delivery = (messages: object[]) => ({
    object: "whatsapp_business_account",
    entry: [{ id: "1", changes: [{ field: "messages", value: { ...value, messages } }] }],
  });
  const { body, signature } = peer.signed(delivery([peer.message("text", { body: "evil" })]));
  assert.equal(await post(body, {}), 401);
  assert.equal(await post(`${body} `, { "x-hub-signature-256": signature }), 401);
  assert.equal(
    await post(body, { "x-hub-signature-256": signature.replace(/.$/, (last) => (last === "0" ? "1" : "0")) }),
    401,
  );
  assert.equal(await post(body, { "x-hub-signature-256": "sha256=zz" }), 401);
  const nonsense = peer.signed("not json");
  assert.equal(await post(nonsense.body, { "x-hub-signature-256": nonsense.signature }), 400);
  const stale = peer.message(
    "text",
    { body: "old" },
    { fields: { timestamp: String(Math.floor(Date.now() / 1_000) - 9 * 86_400) } },
  );
  const replay = peer.signed(delivery([stale]));
  assert.equal(await post(replay.body, { "x-hub-signature-256": replay.signature }), 200);
  const large = peer.signed(delivery([{ text: { body: "x".repeat(3 * 1024 * 1024) } }]));
  assert.equal(await post(large.body, { "x-hub-signature-256": large.signature }), 413);
  assert.equal(host.attempts, attempts);
});

test("fetches files by their id with the token, again when the address has ended", async () => {
  const { peer, adapter } = served;
  const content = Buffer.from("ffd8ffe0", "hex");
  const fetched = async (handle: string, maxBytes = 1_000) =>
    adapter.fetchFile?.(handle, maxBytes, AbortSignal.timeout(60_000));
  const photo = await draftAfter(() => peer.sendMedia("image", content, "image/jpeg", { caption: "look" }));
  assert.equal(photo.text, "look");
  const [file] = photo.files ?? [];
  assert.deepEqual([file?.kind, file?.name, file?.bytes], ["image", undefined, null]);
  assert.deepEqual(await fetched(file?.handle ?? ""), content);
  assert.equal(await fetched(file?.handle ?? "", 2), "too_large");
  peer.fail("download", { kind: "error", code: 100 });
  assert.deepEqual(await fetched(file?.handle ?? ""), content);
  await assert.rejects(async () => fetched("12345"), /media was refused/);
  const texts: string[] = [];
  for (const [type, mediaType, fields] of [
    ["audio", "audio/ogg; codecs=opus", { voice: true }],
    ["video", "video/mp4", {}],
    ["document", "application/pdf", { filename: "a.pdf" }],
    ["sticker", "image/webp", {}],
  ] as const) {
    const draft = await draftAfter(() => peer.sendMedia(type, content, mediaType, fields));
    texts.push(draft.text);
    assert.equal(draft.files?.length, 1);
  }
  assert.deepEqual(texts, ["[voice message]", "[video]", "[document: a.pdf]", "[sticker]"]);
});

test("describes places, contacts and messages that WhatsApp does not deliver", async () => {
  const { peer } = served;
  const textOf = async (type: string, content: object) =>
    (await draftAfter(() => peer.batch([peer.message(type, content)]))).text;
  const place = { latitude: 52.5, longitude: 13.4, name: "Office", address: "Street 1" };
  assert.equal(await textOf("location", place), "[location: Office, Street 1, 52.5, 13.4]");
  const contact = { name: { formatted_name: "Bob" }, phones: [{ phone: "+49 170" }] };
  assert.equal(await textOf("contacts", [contact]), "[contacts: Bob +49 170]");
  assert.equal(await textOf("button", { text: "Yes please", payload: "/stop" }), "Yes please");
  assert.match(await textOf("unsupported", { type: "poll" }), /does not deliver/);
});

test("marks forwarded messages and quotes messages that it has seen", async () => {
  const { peer, adapter, host } = served;
  const forwarded = await draftAfter(() => peer.say("of others", { fields: { context: { forwarded: true } } }));
  assert.deepEqual(forwarded.forwarded, {});
  const part = { address: forwarded.replyTo, idempotencyKey: "q", attempts: 0 };
  await adapter.send(
    { ...part, text: { text: "*the* answer", plain: "the answer", ranges: [] } },
    AbortSignal.timeout(60_000),
  );
  const answerId = peer.sent.at(-1)?.id ?? "";
  const reply = (id: string, from: string) => ({ fields: { context: { id, from } } });
  const quoting = await draftAfter(() => peer.say("why?", reply(answerId, peer.displayPhoneNumber)));
  assert.deepEqual(quoting.quote, { text: "the answer", ofAgent: true });
  const own = await draftAfter(() => peer.say("and this?", reply(quoting.externalId, person)));
  assert.deepEqual(own.quote, { text: "why?", ofSender: true });
  assert.equal((await draftAfter(() => peer.say("?", reply("wamid.unknown", person)))).quote, undefined);
  peer.batch([
    peer.message("reaction", { message_id: answerId, emoji: "👍" }),
    peer.message("reaction", { message_id: answerId }),
  ]);
  await acknowledged();
  assert.deepEqual(
    host.changed.map(({ messageId, change }) => [messageId, change]),
    [
      [answerId, { kind: "reaction", reaction: "👍", ofAgent: true }],
      [answerId, { kind: "reaction", reaction: "", removed: true, ofAgent: true }],
    ],
  );
});

test("runs a pressed button once and tells the person the result", async () => {
  const { peer, adapter, host } = served;
  const { replyTo } = await draftAfter(() => peer.say("do it"));
  const actions = [
    { label: "Approve", input: "/approve AB12C" },
    { label: "Deny", input: "/deny AB12C" },
  ];
  const text = { text: "Sure?", plain: "Sure?", ranges: [] };
  await adapter.send(
    { address: replyTo, text, actions, idempotencyKey: "b", attempts: 0 },
    AbortSignal.timeout(60_000),
  );
  const question = peer.sent.at(-1)?.id ?? "";
  const sent = peer.sent.length;
  const press = peer.press(question, "Deny");
  await peer.untilSent(sent + 1);
  await acknowledged();
  assert.deepEqual(
    host.acted.map(({ externalId, input, contact }) => [externalId, input, contact.id]),
    [[press, "/deny AB12C", person]],
  );
  assert.equal(peer.sent.at(-1)?.text, "Allowed.");
});

test("treats a group as a conversation of its own and looks for a mention there", async () => {
  const { peer } = served;
  const inGroup = (text: string, fields: object = {}) =>
    draftAfter(() => peer.say(text, { fields: { group_id: "Y2FwaV9ncm91cA==", ...fields } }));
  const other = await inGroup("hello all");
  assert.deepEqual(
    [other.conversation, other.group, other.direct, other.addressed],
    ["group:Y2FwaV9ncm91cA==", "Y2FwaV9ncm91cA==", false, false],
  );
  assert.equal(other.replyTo.replyToId, other.externalId);
  assert.equal((await inGroup(`@${peer.displayPhoneNumber} hello`)).addressed, true);
  assert.equal((await inGroup(`@${peer.displayPhoneNumber}7 hello`)).addressed, false);
  assert.equal((await inGroup("yes", { context: { id: "wamid.x", from: peer.displayPhoneNumber } })).addressed, true);
});

test("identifies a person without a number by their user id, never by a name", async () => {
  const { peer } = served;
  const fields = { from: undefined, from_user_id: "DE.13491208655302741918" };
  const draft = await draftAfter(() => peer.say("hi", { name: person, fields }));
  assert.deepEqual([draft.contact.id, draft.conversation], ["DE.13491208655302741918", "DE.13491208655302741918"]);
});

test("logs a message that failed after it was accepted", async () => {
  const { peer, host } = served;
  const errors = [{ code: 131026, title: "Message undeliverable", message: "Message undeliverable" }];
  peer.status({ id: "wamid.f", to: person, status: "failed", errors, callbackData: "turn-9:0" });
  peer.status({ id: "wamid.f", to: person, status: "read", callbackData: null });
  await acknowledged();
  const line = host.logged.find(({ message }) => message.startsWith("message not delivered"));
  assert.deepEqual(line?.fields, {
    messageId: "wamid.f",
    key: "turn-9:0",
    conversation: person,
    code: 131026,
    reason: "Message undeliverable",
  });
});

test("names the account in its check, and explains wrong credentials without secrets", async () => {
  const { peer, adapter, host } = served;
  const check = () => adapter.check?.(AbortSignal.timeout(60_000));
  assert.deepEqual(await check(), { as: "15550783881 (Stand-in)" });
  peer.fail("phone", { kind: "error", code: 190, message: `Error validating ${peer.token}` });
  await assert.rejects(
    async () => check(),
    (error: Error) => {
      assert.equal(error.name, "AccountRejectedError");
      assert.match(error.message, /^token refused by WhatsApp \(.*\[secret\]\)$/);
      return true;
    },
  );
  peer.fail("phone", { kind: "error", code: 100 });
  await assert.rejects(async () => check(), /phone_number_id refused/);
  assert.ok(!host.logText.includes(peer.token) && !host.logText.includes(peer.appSecret));
});

test("never throws for any message of a signed delivery", () => {
  const text = fc.string({ maxLength: 20 });
  const field = fc.oneof(text, fc.integer(), fc.constant(null), fc.object({ maxDepth: 2 }));
  const types = ["text", "image", "audio", "location", "contacts", "reaction", "interactive", "button", "unsupported"];
  const message = fc.record(
    {
      id: fc.oneof(text, fc.constant("wamid.1")),
      from: fc.oneof(text, fc.constant(person)),
      timestamp: fc.oneof(text, fc.constant(String(Math.floor(Date.now() / 1_000)))),
      type: fc.constantFrom(...types),
      context: field,
      group_id: field,
      ...Object.fromEntries(
        types.map((type) => [type, fc.oneof(field, fc.constant({ body: "a", id: "1", emoji: "x" }))]),
      ),
    },
    { requiredKeys: ["id", "from", "type", "timestamp"] },
  );
  const context = { account: "main", nowMs: Date.now(), seen: () => undefined };
  fc.assert(
    fc.property(fc.array(fc.oneof(message, field)), (messages) => {
      const value = { metadata: { phone_number_id: "1", display_phone_number: "1 555" }, messages };
      const delivery = Delivery.parse({
        object: "whatsapp_business_account",
        entry: [{ changes: [{ field: "messages", value }] }],
      });
      for (const each of valuesOf(delivery)) {
        for (const one of each.messages) {
          const parsed = parseMessage(one, each, context);
          if (parsed.kind === "message") assert.ok(parsed.draft.text !== "" && parsed.draft.contact.id.length >= 3);
        }
      }
    }),
    { numRuns: 2_000 },
  );
});
