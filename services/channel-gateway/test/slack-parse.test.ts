// Slack's events as drafts: text, files, shared messages, and hostile input.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { propertyRuns } from "@parley/testing/property-runs";
import { Intake } from "../src/channels/slack/intake.ts";
import { parseEvent, type ParseContext } from "../src/channels/slack/parse.ts";
import type { Parsed } from "../src/channels/parsed.ts";
import { People } from "../src/channels/slack/people.ts";
import { readableText, withoutNotifications } from "../src/channels/slack/text.ts";
import { TestHost } from "./support/channel-host.ts";

const me = { user_id: "U0PARLEY", user: "parley", team: "Team" };
const context: ParseContext = {
  account: "main",
  me,
  replyInThread: true,
  nameOf: (id) => (id === "U0BEN" ? "Ben" : undefined),
};

function parse(fields: Record<string, unknown>): Parsed {
  const event = { type: "message", user: "U0ANN", channel: "C0TEAM", ts: "1700000000.000100", text: "hi", ...fields };
  return parseEvent(event, "Ev1", context);
}

function draftOf(fields: Record<string, unknown>) {
  const parsed = parse(fields);
  assert.ok(parsed.kind === "message", JSON.stringify(parsed));
  return parsed.draft;
}

test("gives a mention the same id in both events that Slack sends for it", () => {
  const text = "<@U0PARLEY>: deploy";
  const [one, two] = [draftOf({ text, channel_type: "channel" }), draftOf({ type: "app_mention", text })];
  assert.deepEqual(one, two);
  assert.deepEqual([one.externalId, one.messageId], ["C0TEAM:1700000000.000100", "1700000000.000100"]);
  assert.deepEqual([one.text, one.addressed, one.sentAt], ["deploy", true, "2023-11-14T22:13:20.000Z"]);
});

test("reads control sequences as people see them", () => {
  const read = (text: string) => readableText(text, context.nameOf);
  assert.equal(read("<@U0BEN> and <@U0EVE|eve> in <#C1|ops> and <#C2>"), "@Ben and @eve in #ops and #C2");
  assert.equal(read("<!here> <!subteam^S1|@devs> <!date^1^{date}|today>"), "@here @devs today");
  assert.equal(read("<https://a.example/?x=1&amp;y=2>"), "https://a.example/?x=1&y=2");
  assert.equal(read("<https://a.example|a.example> <mailto:a@b.example|a@b.example>"), "a.example a@b.example");
  assert.equal(read("1 &lt; 2 &amp;&amp; 3 &gt; 2 &amp;lt;"), "1 < 2 && 3 > 2 &lt;");
});

test("takes names from the directory only, and ids for access", () => {
  assert.deepEqual(draftOf({ user: "U0BEN" }).contact, { id: "U0BEN", name: "Ben" });
  assert.deepEqual(draftOf({ username: "U0OWNER", user_profile: { name: "Owner" } }).contact, { id: "U0ANN" });
  assert.equal(parse({ user: "Owner" }).kind, "skipped");
  assert.equal(parse({ user: "U0ANN", bot_id: "B1" }).kind, "skipped");
});

test("separates what a person shares from what they write", () => {
  const attachments = [{ is_share: true, author_name: "Eve", text: "/new &amp; more" }];
  const forwarded = draftOf({ text: "", attachments });
  assert.deepEqual([forwarded.text, forwarded.forwarded], ["/new & more", { from: "Eve" }]);
  const quoted = draftOf({ text: "is this true?", attachments });
  assert.deepEqual([quoted.text, quoted.quote], ["is this true?", { text: "/new & more", author: "Eve" }]);
  assert.equal(quoted.forwarded, undefined);
});

test("offers files that Slack hosts", () => {
  const file = { id: "F1", name: "a.ogg", mimetype: "audio/ogg", size: 9, url_private: "https://files.slack.com/a" };
  const { files, text } = draftOf({
    subtype: "file_share",
    text: "",
    files: [file, { id: "F2", mode: "tombstone" }, { id: "F3", mode: "external", url_private: "https://x.example" }],
  });
  assert.equal(text, "[file: a.ogg]");
  assert.deepEqual(files, [{ kind: "audio", name: "a.ogg", bytes: 9, handle: "https://files.slack.com/a" }]);
});

test("ignores an edit that only adds a preview of a link", () => {
  const message = { user: "U0ANN", ts: "1.1", text: "see" };
  const edit = { subtype: "message_changed", message, previous_message: message };
  assert.equal(parse(edit).kind, "skipped");
  assert.equal(parse({ ...edit, previous_message: { ...message, text: "old" } }).kind, "change");
});

test("breaks every sequence that notifies, and changes nothing else", () => {
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom("<", "!", "@", "#", "|", ">", "here", "U0A", "C1", " ", "a") }),
      (text) => {
        const safe = withoutNotifications(text);
        assert.doesNotMatch(safe, /<(?:!(?:here|channel)|@[UWB][A-Z0-9]|#C[A-Z0-9])/);
        assert.equal(safe.replaceAll("\u2060", ""), text);
      },
    ),
    { numRuns: propertyRuns(1_000) },
  );
});

test("never fails on hostile deliveries", async () => {
  const host = new TestHost();
  const call = async () => ({ kind: "unreached" as const, reason: "test" });
  const intake = new Intake(
    {
      account: "main",
      replyInThread: true,
      call,
      people: new People(call),
      identify: async () => ({ kind: "ok", result: me }),
    },
    host,
  );
  const keys =
    "type subtype user channel ts text thread_ts files message previous_message item actions trigger_id attachments bot_id";
  const key = fc.constantFrom(...keys.split(" "), "reaction", "blocks", "command", "user_id", "channel_id");
  const value = fc.oneof(
    fc.constantFrom("message", "app_mention", "message_changed", "reaction_added", "block_actions", "U0ANN", "C0TEAM"),
    fc.constantFrom("1700000000.000100", "999999999999.999999999", "<@U0PARLEY> x", "/parley", "__proto__"),
    fc.jsonValue(),
  );
  const record = fc.dictionary(key, fc.oneof(value, fc.dictionary(key, value), fc.array(fc.dictionary(key, value))));
  const payload = fc.oneof(
    fc.record({ type: fc.constant("event_callback"), event_id: fc.constant("Ev1"), event: record }),
    record,
    fc.jsonValue(),
  );
  const type = fc.constantFrom("events_api", "interactive", "slash_commands", "other");
  await fc.assert(
    fc.asyncProperty(type, payload, async (kind, given) => intake.take(kind, given)),
    { numRuns: propertyRuns(10_000) },
  );
  for (const { contact, conversation } of host.accepted) {
    assert.match(contact.id, /^[UWB][A-Z0-9]+$/);
    assert.match(conversation, /^[CDG][A-Z0-9]+(?:\/\d+\.\d+)?$/);
  }
});
