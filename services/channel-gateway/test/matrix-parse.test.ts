// The parser of Matrix events, invitations and addresses, without a homeserver.
import assert from "node:assert/strict";
import { test } from "node:test";
import { matrixChannel } from "@parley/contracts";
import { propertyRuns } from "@parley/testing/property-runs";
import fc from "fast-check";
import { createMatrix } from "../src/channels/matrix/index.ts";
import { mayNeedName, parse, type ParseContext } from "../src/channels/matrix/parse.ts";
import { targetOf } from "../src/channels/matrix/relations.ts";
import { accepts } from "../src/channels/matrix/rooms.ts";
import { MatrixEvent, Sync } from "../src/channels/matrix/schema.ts";

const me = { userId: "@parley:a.org", names: ["Parley"] };
const context: ParseContext = {
  account: "main",
  roomId: "!room:a.org",
  me,
  direct: false,
  nameOf: () => undefined,
  related: null,
};

function event(content: object, more: object = {}): MatrixEvent {
  return MatrixEvent.parse({ event_id: "$1", type: "m.room.message", sender: "@ann:a.org", content, ...more });
}

const text = (body: string, more: object = {}) => event({ msgtype: "m.text", body, ...more });

function draftOf(of: MatrixEvent, more: Partial<ParseContext> = {}) {
  const parsed = parse(of, { ...context, ...more });
  assert.ok(parsed.kind === "message", JSON.stringify(parsed));
  return parsed.draft;
}

test("finds a mention by id, in old clients by link, and never by a display name", () => {
  const link = {
    format: "org.matrix.custom.html",
    formatted_body: '<a href="https://matrix.to/#/@parley:a.org">P</a>: hi',
  };
  const cases: [MatrixEvent, boolean][] = [
    [text("hi", { "m.mentions": { user_ids: [me.userId] } }), true],
    [text("Parley: hi", link), true],
    [text("Parley: hi", { ...link, "m.mentions": {} }), false],
    [text("hi", { "m.mentions": { room: true } }), false],
    [text("Parley: hi"), false],
    [text("hi", { "m.mentions": { user_ids: "@parley:a.org" } }), false],
  ];
  for (const [of, addressed] of cases) assert.equal(draftOf(of).addressed, addressed, JSON.stringify(of.content));
});

test("removes the agent's name from a mention and nothing else", () => {
  const mentions = { "m.mentions": { user_ids: [me.userId] } };
  for (const body of ["Parley: do it", "@parley:a.org do it", "@Parley, do it", "PARLEY do it"]) {
    assert.equal(draftOf(text(body, mentions)).text, "do it", body);
  }
  for (const body of ["Parleys do it", "do it Parley", "Parley:"])
    assert.equal(draftOf(text(body, mentions)).text, body);
  assert.equal(draftOf(text("Parley do it")).text, "Parley do it");
});

test("removes a name that only the sender's client knows, and one of several", () => {
  const mentions = { "m.mentions": { user_ids: [me.userId] } };
  const link = (id: string) => ({
    formatted_body: `<a href="https://matrix.to/#/${id}">Old (x)</a>: do it`,
    ...mentions,
  });
  assert.equal(draftOf(text("Old (x): do it", link(me.userId))).text, "do it");
  assert.equal(draftOf(text("Old (x): do it", link(encodeURIComponent(me.userId)))).text, "do it");
  assert.equal(draftOf(text("Old (x): do it", link("@bob:a.org"))).text, "Old (x): do it");
  const renamed = { userId: me.userId, names: ["New", "Parley"] };
  for (const name of renamed.names)
    assert.equal(draftOf(text(`${name}: do it`, mentions), { me: renamed }).text, "do it");
  assert.ok(mayNeedName(text("New: do it", mentions), me));
  assert.ok(!mayNeedName(text("Parley: do it", mentions), me));
  assert.ok(!mayNeedName(text("New: do it"), me));
});

test("removes the quoted copy from a reply only", () => {
  const reply = { "m.relates_to": { "m.in_reply_to": { event_id: "$0" } } };
  assert.equal(draftOf(text("> <@bob:a.org> a\n> b\n\nmy answer\n> mine", reply)).text, "my answer\n> mine");
  assert.equal(draftOf(text("> quoted by hand", reply)).text, "> quoted by hand");
  assert.equal(draftOf(text("> <b> no reply")).text, "> <b> no reply");
});

test("trusts a quote only when the agent or the sender wrote it", () => {
  const reply = text("why?", { "m.relates_to": { "m.in_reply_to": { event_id: "$0" } } });
  const quoted = (sender: string) =>
    draftOf(reply, { related: event({ body: "x" }, { event_id: "$0", sender }) }).quote;
  assert.deepEqual(quoted(me.userId), { text: "x", ofAgent: true });
  assert.deepEqual(quoted("@ann:a.org"), { text: "x", ofSender: true });
  assert.deepEqual(quoted("@eve:a.org"), { text: "x" });
});

test("ignores own messages, notices, and edits of messages of other people", () => {
  const edit = text("* b", {
    "m.new_content": { body: "b" },
    "m.relates_to": { rel_type: "m.replace", event_id: "$0" },
  });
  const cases: [MatrixEvent, Partial<ParseContext>][] = [
    [event({ msgtype: "m.text", body: "a" }, { sender: me.userId }), {}],
    [event({ msgtype: "m.notice", body: "a" }), {}],
    [event({}), {}],
    [edit, { related: null }],
    [edit, { related: event({ body: "a" }, { event_id: "$0", sender: "@eve:a.org" }) }],
  ];
  for (const [of, more] of cases) assert.equal(parse(of, { ...context, ...more }).kind, "skipped");
});

test("takes the identity from the user id, never from a name", () => {
  const draft = draftOf(text("hi"), { nameOf: () => "@owner:a.org" });
  assert.deepEqual(draft.contact, { id: "@ann:a.org", name: "@owner:a.org" });
});

test("accepts no file without an address on a homeserver", () => {
  for (const url of ["https://evil.org/x", "mxc://a.org/../../x", "mxc://../x", "mxc://a.org", 7, { a: 1 }]) {
    assert.equal(draftOf(event({ msgtype: "m.image", body: "a.png", url })).files, undefined);
  }
});

test("accepts invitations only for listed rooms and from people who may write", () => {
  const people = matrixChannel.settings.parse({
    homeserver: "https://a.org",
    token_env: "PARLEY_CHANNEL_M",
    owners: ["@ann:a.org"],
    allow_from: ["@bob:a.org"],
    groups: ["!g:a.org"],
  });
  const on = (dm_policy: (typeof people)["dm_policy"]) => ({ ...people, dm_policy });
  assert.ok(accepts(on("disabled"), "!g:a.org", "@eve:a.org", false));
  assert.ok(accepts(on("disabled"), "!x:a.org", "@ann:a.org", false));
  assert.ok(!accepts(on("disabled"), "!x:a.org", "@bob:a.org", true));
  assert.ok(accepts(on("allowlist"), "!x:a.org", "@bob:a.org", false));
  assert.ok(!accepts(on("allowlist"), "!x:a.org", "@eve:a.org", true));
  assert.ok(accepts(on("pairing"), "!x:a.org", "@eve:a.org", true));
  assert.ok(!accepts(on("open"), "!x:a.org", "@eve:a.org", false));
  const everyGroup = { ...on("allowlist"), groups: ["*"] };
  assert.ok(accepts(everyGroup, "!x:a.org", "@eve:a.org", false));
  assert.ok(!accepts(everyGroup, "!x:a.org", "@eve:a.org", true));
});

test("refuses settings that name rooms or people by something that can change", () => {
  const create = (people: object) =>
    createMatrix(
      "main",
      matrixChannel.settings.parse({ homeserver: "https://a.org", token_env: "PARLEY_CHANNEL_M", ...people }),
      "t",
    );
  assert.throws(() => create({ groups: ["#alias:a.org"] }), /not a room id/);
  assert.throws(() => create({ owners: ["Ann"] }), /not a Matrix user id/);
  assert.throws(() => create({ allow_from: ["@ann"] }), /not a Matrix user id/);
  assert.equal(create({ owners: ["@ann:a.org"], groups: ["!g:a.org"] }).account, "main");
});

test("reads addresses of rooms and threads and refuses others", () => {
  assert.deepEqual(targetOf("!a:b.org"), { roomId: "!a:b.org" });
  assert.deepEqual(targetOf("!a:b.org/$c/d"), { roomId: "!a:b.org", thread: "$c/d" });
  for (const address of ["", "#a:b.org", "@a:b.org", "!a b", "!a/x", `!${"a".repeat(300)}`])
    assert.equal(targetOf(address), null);
});

const hostile = fc.oneof(
  fc.json().map((json): unknown => JSON.parse(json)),
  fc.constantFrom("m.thread", "m.replace", "m.annotation", "$0", "$1", "mxc://a.org/x", "", null, [], {}, -1),
);
const hostileContent = fc.dictionary(
  fc.constantFrom(
    "msgtype",
    "body",
    "url",
    "info",
    "filename",
    "m.mentions",
    "formatted_body",
    "m.new_content",
    "redacts",
    "membership",
  ),
  hostile,
);
const hostileRelation = fc.record(
  { rel_type: hostile, event_id: hostile, key: hostile, is_falling_back: hostile, "m.in_reply_to": hostile },
  { requiredKeys: [] },
);
const types = ["m.room.message", "m.reaction", "m.room.redaction", "m.room.member", "m.room.encrypted", "x"];

test("never throws for an event with any content", () => {
  const events = fc.record({
    event_id: fc.constantFrom("$0", "$1"),
    type: fc.constantFrom(...types),
    sender: fc.constantFrom("@ann:a.org", me.userId),
    content: fc
      .tuple(hostileContent, hostileRelation)
      .map(([content, relates]) => ({ ...content, "m.relates_to": relates })),
    unsigned: hostile,
    origin_server_ts: hostile,
    state_key: hostile,
  });
  fc.assert(
    fc.property(events, fc.option(events), fc.boolean(), (raw, other, direct) => {
      const of = MatrixEvent.parse(raw);
      const parsed = parse(of, { ...context, direct, related: other === null ? null : MatrixEvent.parse(other) });
      if (parsed.kind === "message") {
        assert.ok(parsed.draft.text.trim() !== "");
        assert.notEqual(targetOf(parsed.draft.conversation), null);
        assert.equal(parsed.draft.contact.id, "@ann:a.org");
      }
    }),
    { numRuns: propertyRuns(1_000) },
  );
});

test("reads the other rooms of a response with a damaged room", () => {
  const good = {
    timeline: { events: [{ event_id: "$1", type: "m.room.message", sender: "@a:b", content: { body: "x" } }] },
  };
  fc.assert(
    fc.property(hostile, (damaged) => {
      const parsed = Sync.parse({
        next_batch: "s1",
        rooms: { join: { "!good:a": good, "!bad:a": { timeline: damaged, state: damaged } } },
      });
      assert.equal(parsed.rooms.join["!good:a"]?.timeline.events.length, 1);
    }),
    { numRuns: propertyRuns(200) },
  );
});
