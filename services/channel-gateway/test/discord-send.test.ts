// What the Discord adapter sends: outcomes, repetition, limits, files, edits. And its parser against hostile input.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { buttonsOf, startDiscordPeer, type DiscordPeer } from "@parley/testing";
import { propertyRuns } from "@parley/testing/property-runs";
import fc from "fast-check";
import type { OutboundPart } from "../src/channels/channel.ts";
import { parseCursor } from "../src/channels/discord/cursor.ts";
import { discordMarkdown } from "../src/channels/discord/markdown.ts";
import {
  parseDeletion,
  parseEdit,
  parseInteraction,
  parseMessage,
  parseReaction,
} from "../src/channels/discord/parse.ts";
import { Interaction } from "../src/channels/discord/schema.ts";
import { discordAdapter } from "./support/discord.ts";

const messages = "POST /channels/{}/messages";
const soon = () => AbortSignal.timeout(60_000);

function partOf(peer: DiscordPeer, text: string, more: Partial<OutboundPart> = {}): OutboundPart {
  const address = { channel: "discord", account: "main", conversation: peer.channelId };
  return { address, text: { text, plain: text, ranges: [] }, idempotencyKey: "key", attempts: 0, ...more };
}

describe("sending to Discord", { concurrency: true }, () => {
  test("sends a reply with buttons, and mentions neither roles nor everyone", async () => {
    await using peer = await startDiscordPeer();
    const asked = peer.say("?", { channel: peer.channelId });
    const address = { ...partOf(peer, "").address, replyToId: asked };
    const actions = Array.from({ length: 7 }, (_, index) => ({ label: `L${index}`, input: `/do ${index}` }));
    await discordAdapter(peer).send(partOf(peer, "**yes** @everyone", { address, actions }), soon());
    const [sent] = peer.sent;
    assert.equal(sent?.content, "**yes** @everyone");
    assert.equal(sent?.replyToId, asked);
    assert.deepEqual(
      sent === undefined ? [] : buttonsOf(sent).map(({ customId }) => customId),
      actions.map(({ input }) => input),
    );
    assert.deepEqual(peer.calls[0]?.body["allowed_mentions"], { parse: ["users"], replied_user: true });
    assert.equal(sent?.flags, 4, "no link previews");
  });

  test("repeats a send with an unknown outcome, which Discord answers with the first message", async () => {
    await using peer = await startDiscordPeer();
    const adapter = discordAdapter(peer);
    for (const [attempts, kind] of (["reset_after_commit", "hang_after_commit", "bad_gateway"] as const).entries()) {
      peer.fail(messages, { kind });
      const hanging = new AbortController();
      if (kind === "hang_after_commit") {
        void peer.until("the repetition", () => (peer.repeatedSends > 0 ? true : null)).then(() => hanging.abort());
      }
      const signal = AbortSignal.any([hanging.signal, soon()]);
      assert.equal((await adapter.send(partOf(peer, "once", { attempts }), signal)).state, "retry");
    }
    const sent = await adapter.send(partOf(peer, "once", { attempts: 3 }), soon());
    assert.deepEqual(sent, { state: "sent", providerMessageId: peer.sent[0]?.id });
    assert.equal(peer.sent.length, 1);
    assert.ok(peer.repeatedSends >= 2);
    peer.fail(messages, { kind: "reset_after_commit" });
    const late = await adapter.send(partOf(peer, "late", { attempts: 5 }), soon());
    assert.equal(late.state, "unknown", "the nonce may be forgotten by then");
  });

  test("keeps the limits that Discord reports, for the channel or for the account", async () => {
    await using peer = await startDiscordPeer({ limits: { channel: { limit: 2, windowMs: 600_000 } } });
    const adapter = discordAdapter(peer);
    for (const text of ["a", "b"])
      assert.equal((await adapter.send(partOf(peer, text, { idempotencyKey: text }), soon())).state, "sent");
    const third = await adapter.send(partOf(peer, "c"), soon());
    assert.ok(third.state === "retry" && third.scope === "conversation" && third.afterMs <= 600_000);
    assert.equal(peer.calls.length, 2, "a call that would be refused is not made");
    const other = partOf(peer, "c", {
      idempotencyKey: "direct",
      address: { ...partOf(peer, "").address, conversation: peer.directChannelId() },
    });
    assert.equal((await adapter.send(other, soon())).state, "sent");
    peer.fail(messages, { kind: "too_many", retryAfterSeconds: 0.25, global: true });
    const direct = { ...other, idempotencyKey: "other" };
    assert.deepEqual(await adapter.send({ ...direct, text: { text: "d", plain: "d", ranges: [] } }, soon()), {
      state: "retry",
      afterMs: 250,
      reason: "rate limit",
      scope: "account",
    });
    const paused = await adapter.edit?.(other.address, "1", { text: "x", plain: "x", ranges: [] }, soon());
    assert.ok(paused?.state === "retry" && paused.scope === "account");
  });

  test("drops what can never be delivered, and waits while the token is refused or a permission is missing", async () => {
    await using peer = await startDiscordPeer();
    const adapter = discordAdapter(peer);
    const to = (conversation: string) => partOf(peer, "a", { address: { ...partOf(peer, "").address, conversation } });
    assert.equal((await adapter.send(to("nonsense"), soon())).state, "dropped");
    assert.deepEqual(await adapter.send(to("123"), soon()), { state: "dropped", reason: "Unknown Channel (10003)" });
    peer.refuse(peer.channelId, 403, 50_013, "Missing Permissions");
    assert.deepEqual(await adapter.send(partOf(peer, "a"), soon()), {
      state: "retry",
      afterMs: 60_000,
      reason: "the bot lacks a permission in the channel: Missing Permissions (50013)",
    });
    const refused = await discordAdapter(peer, {}, "wrong.token.x").send(partOf(peer, "a"), soon());
    assert.ok(refused.state === "retry" && refused.afterMs === 60_000);
    assert.doesNotMatch(JSON.stringify(refused), /wrong\.token/);
    const closed = await startDiscordPeer();
    await closed.close();
    const unreached = await discordAdapter(closed).send(partOf(peer, "a"), soon());
    assert.ok(unreached.state === "retry" && unreached.reason === "ECONNREFUSED");
  });

  test("sends a text with its files in one message, and drops a file that is too large", async () => {
    const many = { limit: 1_000, windowMs: 1_000 };
    await using peer = await startDiscordPeer({ limits: { channel: many, global: many } });
    const adapter = discordAdapter(peer);
    const file = { name: "a b.txt", mediaType: "text/plain", content: Buffer.from("content") };
    await adapter.send(partOf(peer, "two files", { files: [file, { ...file, name: "ä.txt" }] }), soon());
    await adapter.send({ ...partOf(peer, ""), text: null, file, idempotencyKey: "second" }, soon());
    assert.deepEqual(
      peer.sent.map(({ content, files }) => [content, files.map(({ name }) => name)]),
      [
        ["two files", ["a b.txt", "ä.txt"]],
        ["", ["a b.txt"]],
      ],
    );
    assert.equal(peer.sent[1]?.files[0]?.content.toString(), "content");
    const large = { ...file, content: Buffer.alloc(10 * 1024 * 1024 + 1) };
    const dropped = await adapter.send({ ...partOf(peer, ""), text: null, file: large }, soon());
    assert.ok(dropped.state === "dropped" && /larger than Discord accepts/.test(dropped.reason));
    await adapter.send(partOf(peer, "the text", { files: [large], idempotencyKey: "third" }), soon());
    assert.equal(peer.sent[2]?.content, "the text\n[not sent, larger than Discord accepts: a b.txt]");
    peer.withoutFiles.add(peer.channelId);
    await adapter.send(partOf(peer, "a text", { files: [file], idempotencyKey: "fourth" }), soon());
    assert.equal(peer.sent[3]?.content, "a text\n[not sent, the bot may not attach files here: a b.txt]");
    const waiting = await adapter.send({ ...partOf(peer, ""), text: null, file, idempotencyKey: "fifth" }, soon());
    assert.ok(waiting.state === "retry" && /lacks a permission/.test(waiting.reason));
  });

  test("edits, deletes and reacts, repeatedly, and shows that it types", async () => {
    await using peer = await startDiscordPeer();
    const adapter = discordAdapter(peer);
    const { address } = partOf(peer, "");
    const actions = [{ label: "A", input: "/a" }];
    const sent = await adapter.send(partOf(peer, "draft", { actions }), soon());
    const id = sent.state === "sent" ? (sent.providerMessageId ?? "") : "";
    const text = { text: "final", plain: "final", ranges: [] };
    assert.deepEqual(await adapter.edit?.(address, id, text, soon()), { state: "sent", providerMessageId: id });
    assert.deepEqual([peer.message(id)?.content, peer.message(id)?.components], ["final", []]);
    const asked = peer.say("hi", { channel: peer.channelId });
    assert.equal((await adapter.react?.(address, asked, "👀", soon()))?.state, "sent");
    assert.deepEqual([...(peer.message(asked)?.reactions ?? [])], ["👀"]);
    await new Promise((resolve) => setTimeout(resolve, 260));
    await adapter.react?.(address, asked, null, soon());
    assert.equal(peer.message(asked)?.reactions.size, 0);
    for (const _ of [1, 2]) assert.equal((await adapter.remove?.(address, id, soon()))?.state, "sent");
    assert.equal((await adapter.edit?.(address, id, text, soon()))?.state, "dropped");
    await adapter.typing?.(address);
    assert.equal(peer.typing.get(peer.channelId), 1);
  });
});

describe("Markdown for Discord", () => {
  test("shows the characters of character references, except in code", () => {
    assert.equal(
      discordMarkdown("A &amp; B &lt;c&gt; &#169;&#xA9; &unknown; `&amp;`\n```\n&amp;\n```"),
      "A & B <c> ©© &unknown; `&amp;`\n```\n&amp;\n```",
    );
  });

  test("shows tables as code and deep headings as bold text, outside of code blocks", () => {
    const table = "| a | b |\n|---|---|\n| 1 | 2 |";
    assert.equal(
      discordMarkdown(`# One\n\n#### Four ##\n\n${table}\n\nend`),
      `# One\n\n**Four**\n\n\`\`\`\n${table}\n\`\`\`\n\nend`,
    );
    const code = `\`\`\`md\n#### Four\n${table}\n\`\`\``;
    assert.equal(discordMarkdown(code), code);
    const long = `${"a".repeat(1_985)}\n${table.slice(0, 14)}`;
    assert.equal(discordMarkdown(long), long, "a message that would become too long stays as it is");
  });
});

describe("the parser of Discord's events", () => {
  const surroundings = { account: "main", me: { id: "1" }, parentId: null, eventId: "s:1" };
  const valid = {
    id: "10",
    channel_id: "20",
    guild_id: "30",
    type: 0,
    author: { id: "40", username: "ann" },
    content: "<@1> hello",
    timestamp: "2026-01-01T00:00:00.000000+00:00",
    mentions: [{ id: "1", username: "parley" }],
    attachments: [{ id: "50", filename: "a" }],
    user_id: "40",
    message_id: "10",
    emoji: { name: "x" },
    token: "t",
    application_id: "60",
    data: { name: "help", options: [] },
    member: { nick: "Ann", user: { id: "40" } },
  };

  test("never throws for any fields of an event", () => {
    const field = fc.constantFrom(
      ...Object.keys(valid),
      "referenced_message",
      "message_snapshots",
      "message_reference",
      "sticker_items",
    );
    fc.assert(
      fc.property(
        fc.dictionary(field, fc.oneof(fc.anything(), fc.constant(undefined))),
        fc.anything(),
        (changes, other) => {
          for (const data of [{ ...valid, ...changes }, other]) {
            for (const parse of [parseMessage, parseEdit, parseDeletion]) parse(data, surroundings);
            for (const removed of [true, false]) parseReaction(data, removed, surroundings);
            const interaction = Interaction.safeParse(data);
            if (interaction.success) parseInteraction(interaction.data, surroundings);
          }
        },
      ),
      { numRuns: propertyRuns(2_000) },
    );
    assert.equal(parseMessage(valid, surroundings).kind, "message");
  });

  test("identifies people only by their id", () => {
    const named = { ...valid, author: { id: "41", username: "ann", global_name: "Ann" }, member: { nick: "owner" } };
    const parsed = parseMessage(named, surroundings);
    assert.ok(parsed.kind === "message");
    assert.deepEqual(parsed.draft.contact, { id: "41", name: "owner" });
  });

  test("begins without a cursor when the stored one cannot be read", () => {
    for (const text of [
      null,
      "",
      "nonsense",
      "{}",
      '{"session":{"id":"a","url":"http://evil.example","seq":1},"message":null,"conversations":[]}',
    ])
      assert.equal(parseCursor(text).session, null);
  });
});
