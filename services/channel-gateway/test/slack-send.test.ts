// Messages, edits and files to Slack, and the outcome of each.
import assert from "node:assert/strict";
import { test } from "node:test";
import { slackChannel } from "@parley/contracts";
import { startSlackPeer, type SlackFault } from "@parley/testing";
import type { OutboundPart, SendOutcome } from "../src/channels/channel.ts";
import { firstPart, sendAnswer } from "./support/parts.ts";
import { serveSlack, slackAdapter } from "./support/slack.ts";

const addressOf = (conversation = "D0ANN") => ({ channel: "slack", account: "main", conversation });
const answer = (text: string, conversation?: string): OutboundPart =>
  firstPart(slackChannel.capabilities.text, addressOf(conversation), text);
const soon = (): AbortSignal => AbortSignal.timeout(60_000);
const many = { postRate: { burst: 1_000, everyMs: 1 } };

test("sends an answer as Markdown in its thread, without previews of links", async () => {
  await using peer = await startSlackPeer();
  const { ts } = peer.say("question", { channel: "C0GENERAL" });
  const text = "# Title\n\n**Hi** [there](https://example.org)\n\n| a | b |\n|---|---|\n| 1 | 2 |";
  const outcome = await slackAdapter(peer).send(answer(text, `C0GENERAL/${ts}`), soon());
  const [sent] = peer.sent;
  assert.deepEqual(outcome, { state: "sent", providerMessageId: sent?.ts });
  assert.deepEqual([sent?.channel, sent?.threadTs, sent?.text], ["C0GENERAL", ts, "Title\nHi there\na b\n1 2"]);
  assert.deepEqual(sent?.blocks, [{ type: "markdown", text }]);
  const call = peer.calls.find(({ method }) => method === "chat.postMessage");
  assert.equal(call?.parameters["unfurl_links"], "false");
});

test("sends a long answer in order, each message within the limit", async () => {
  await using peer = await startSlackPeer(many);
  const lines = Array.from({ length: 400 }, (_, line) => `${line} **bold** & <some> text of a line`);
  const outcomes = await sendAnswer(slackAdapter(peer), addressOf(), lines.join("\n"), soon());
  assert.ok(outcomes.length > 3 && outcomes.every(({ state }) => state === "sent"));
  const shown = peer.sent.map(({ text }) => text).join("\n");
  assert.equal(shown, lines.join("\n").replaceAll("**", ""));
});

test("notifies nobody whom the agent's text names in Slack's own markup", async () => {
  await using peer = await startSlackPeer(many);
  const adapter = slackAdapter(peer);
  const text = "<!channel> <!here|x> <!everyone> <@U0BOSS> <!subteam^S1|@all> `<!channel>`\n```\n<@U0BOSS>\n```";
  const outcome = await adapter.send(answer(text), soon());
  assert.ok(outcome.state === "sent" && outcome.providerMessageId !== null);
  await adapter.edit?.(addressOf(), outcome.providerMessageId, { text, plain: text, ranges: [] }, soon());
  peer.fail("chat.postMessage", { kind: "refuse", error: "invalid_blocks" });
  await adapter.send(answer(text), soon());
  assert.deepEqual(
    peer.sent.map(({ notified }) => notified),
    [[], []],
  );
  assert.equal(peer.sent[0]?.edits, 1);
});

test("sends the text as it is when Slack refuses the block", async () => {
  await using peer = await startSlackPeer();
  peer.fail("chat.postMessage", { kind: "refuse", error: "invalid_blocks" });
  assert.equal((await slackAdapter(peer).send(answer("a <b> & c"), soon())).state, "sent");
  assert.deepEqual(
    peer.sent.map(({ text, blocks }) => ({ text, blocks })),
    [{ text: "a <b> & c", blocks: [] }],
  );
});

test("shows an answer that grows by edits, and deletes a message", async () => {
  await using peer = await startSlackPeer();
  const adapter = slackAdapter(peer);
  const outcome = await adapter.send(answer("one"), soon());
  assert.ok(outcome.state === "sent" && outcome.providerMessageId !== null);
  const { providerMessageId: ts } = outcome;
  const text = { text: "one **two**", plain: "one **two**", ranges: [] };
  assert.deepEqual(await adapter.edit?.(addressOf(), ts, text, soon()), { state: "sent", providerMessageId: ts });
  assert.deepEqual([peer.sent[0]?.text, peer.sent[0]?.edits], ["one two", 1]);
  peer.fail("chat.update", { kind: "rate_limited", retryAfterSeconds: 4 });
  assert.deepEqual(await adapter.edit?.(addressOf(), ts, text, soon()), {
    state: "retry",
    afterMs: 4_000,
    reason: "ratelimited",
  });
  for (let count = 0; count < 2; count += 1) {
    assert.equal((await adapter.remove?.(addressOf(), ts, soon()))?.state, "sent");
  }
  assert.equal(peer.sent[0]?.deleted, true);
  assert.equal((await adapter.edit?.(addressOf(), ts, text, soon()))?.state, "dropped");
});

test("reports retry, unknown or dropped for each kind of failure", async () => {
  await using peer = await startSlackPeer();
  const adapter = slackAdapter(peer);
  const outcomeOf = async (fault: SlackFault): Promise<SendOutcome> => {
    peer.fail("chat.postMessage", fault);
    return adapter.send(answer("a"), soon());
  };
  assert.deepEqual(await outcomeOf({ kind: "rate_limited", retryAfterSeconds: 7 }), {
    state: "retry",
    afterMs: 7_000,
    reason: "ratelimited",
    scope: "conversation",
  });
  for (const kind of ["server_error", "bad_gateway"] as const) {
    assert.equal((await outcomeOf({ kind })).state, "retry");
  }
  for (const error of ["invalid_auth", "token_revoked", "missing_scope", "service_unavailable"]) {
    assert.equal((await outcomeOf({ kind: "refuse", error })).state, "retry", error);
  }
  for (const error of ["fatal_error", "internal_error", "request_timeout"]) {
    assert.equal((await outcomeOf({ kind: "refuse", error })).state, "unknown", error);
  }
  for (const error of ["channel_not_found", "is_archived", "not_in_channel", "restricted_action"]) {
    assert.equal((await outcomeOf({ kind: "refuse", error })).state, "dropped", error);
  }
  assert.deepEqual(peer.sent, []);
  assert.equal((await outcomeOf({ kind: "reset_after_commit" })).state, "unknown");
  peer.fail("chat.postMessage", { kind: "hang_after_commit" });
  const impatient = new AbortController();
  void peer.untilSent(2).then(() => impatient.abort());
  assert.equal((await adapter.send(answer("b"), impatient.signal)).state, "unknown");
  assert.equal((await adapter.send(answer("c"), AbortSignal.abort())).state, "retry");
  assert.equal((await adapter.send(answer("a", "nonsense"), soon())).state, "dropped");
  assert.equal((await adapter.send(answer("a", "C0GENERAL/1700000000.000001"), soon())).state, "dropped");
  assert.equal(peer.sent.length, 2);
  assert.equal(peer.duplicates, 0);
});

test("uploads a file into its thread, and repeats it only when nobody has seen it", async () => {
  await using peer = await startSlackPeer();
  const adapter = slackAdapter(peer);
  const { ts } = peer.say("question", { channel: "C0GENERAL" });
  const file = { name: 'q"ä.bin', mediaType: "application/zip", content: Buffer.from("PK\u0000\u0001") };
  const part = { ...answer("", `C0GENERAL/${ts}`), text: null, file };
  for (const method of ["files.getUploadURLExternal", "upload"]) {
    peer.fail(method, { kind: "reset_after_commit" });
    assert.equal((await adapter.send(part, soon())).state, "retry", method);
  }
  assert.equal(peer.sent.length, 0);
  assert.equal((await adapter.send(part, soon())).state, "sent");
  const [message] = peer.sent;
  assert.deepEqual([message?.threadTs, message?.files[0]?.name], [ts, file.name]);
  assert.deepEqual(message?.files[0]?.content, file.content);
  peer.fail("files.completeUploadExternal", { kind: "reset_after_commit" });
  assert.equal((await adapter.send(part, soon())).state, "unknown");
  peer.closeChannel("C0GENERAL", "is_archived");
  assert.equal((await adapter.send(part, soon())).state, "dropped");
});

test("fetches files of people with its token, up to a limit, and only from Slack", async () => {
  await using served = await serveSlack();
  const { peer, host, adapter } = served;
  const content = Buffer.alloc(3_000, 7);
  peer.sendFile(content, { name: "a.png", mediaType: "image/png", comment: "look" });
  peer.sendFile(content, { name: "b.pdf", mediaType: "application/pdf" });
  const [one, two] = await host.untilAccepted(2);
  assert.deepEqual([one?.text, two?.text], ["look", "[file: b.pdf]"]);
  const [file] = one?.files ?? [];
  assert.deepEqual([file?.kind, file?.name, file?.bytes], ["image", "a.png", 3_000]);
  const handle = file?.handle ?? "";
  assert.doesNotMatch(handle, /xoxb/);
  const fetchFile = async (address: string, maxBytes: number, signal: AbortSignal) =>
    adapter.fetchFile?.(address, maxBytes, signal);
  assert.deepEqual(Buffer.from((await fetchFile(handle, 3_000, soon())) as Uint8Array), content);
  assert.equal(await fetchFile(handle, 2_999, soon()), "too_large");
  peer.fail("download", { kind: "reset_after_commit" });
  await assert.rejects(fetchFile(handle, 3_000, soon()), /the connection was lost/);
  await assert.rejects(
    slackAdapter(peer, {}, "xoxb-other").fetchFile?.(handle, 3_000, soon()) ?? Promise.resolve(),
    /files:read/,
  );
  for (const other of [
    "https://slack.com.evil.example/x",
    "http://files.slack.com/x",
    "file:///etc/passwd",
    "nonsense",
  ]) {
    await assert.rejects(fetchFile(other, 3_000, soon()), /not stored by Slack/);
  }
});

test("keeps a message and names the scope that the app lacks, and sends it when the scope was added", async () => {
  await using served = await serveSlack();
  const { peer, adapter, host } = served;
  for (const scope of ["chat:write", "files:write", "users:read", "reactions:write"]) peer.missingScopes.add(scope);
  const file = { ...answer(""), text: null, file: { name: "a", mediaType: "text/plain", content: Buffer.from("a") } };
  for (const [part, scope] of [
    [answer("a"), "chat:write"],
    [file, "files:write"],
  ] as const) {
    const outcome = await adapter.send(part, soon());
    assert.ok(outcome.state === "retry" && outcome.afterMs === 60_000, scope);
    assert.ok(outcome.reason.includes(`a scope is missing`) && outcome.reason.includes(scope), outcome.reason);
  }
  peer.name("U0ANN", "Ann");
  peer.say("hello");
  assert.equal((await host.untilAccepted(1))[0]?.contact.name, undefined, "without users:read people have no names");
  peer.missingScopes.clear();
  assert.equal((await adapter.send(answer("a"), soon())).state, "sent");
  assert.equal((await adapter.send(file, soon())).state, "sent");
});

test("shows a status in threads, and stops trying when the app may not", async () => {
  await using peer = await startSlackPeer();
  const adapter = slackAdapter(peer);
  const { ts } = peer.say("question", { channel: "C0GENERAL" });
  const thread = addressOf(`C0GENERAL/${ts}`);
  await adapter.typing?.(thread);
  await adapter.stopTyping?.(thread);
  await adapter.typing?.(addressOf());
  assert.deepEqual(
    peer.statuses.map(({ status }) => status),
    ["is thinking…", ""],
  );
  peer.fail("assistant.threads.setStatus", { kind: "refuse", error: "missing_scope" });
  await adapter.typing?.(thread);
  await adapter.typing?.(thread);
  assert.equal(peer.calls.filter(({ method }) => method === "assistant.threads.setStatus").length, 3);
});

test("never reveals a token in a reason", async () => {
  const reasons: string[] = [];
  const gone = await startSlackPeer();
  await gone.close();
  for (const api_root of [gone.url, "http://no-such-host.invalid"]) {
    const outcome = await slackAdapter(gone, { api_root }).send(answer("a"), soon());
    assert.equal(outcome.state, "retry", "nothing listens there");
    reasons.push("reason" in outcome ? outcome.reason : "");
  }
  await using peer = await startSlackPeer();
  peer.fail("chat.postMessage", { kind: "refuse", error: `bad ${peer.tokens.bot}` });
  const outcome = await slackAdapter(peer).send(answer("a"), soon());
  reasons.push("reason" in outcome ? outcome.reason : "");
  assert.equal(reasons.filter((reason) => reason !== "" && !reason.includes("StandIn")).length, 3, reasons.join());
});
