// Buttons and typed answers on a real store and gateway: one decision, by an authorized person, and later presses are answered.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { parseSettings } from "@parley/chassis";
import { noUsage, store, textOf, type InboundMessage } from "@parley/contracts";
import { startTelegramPeer, type TelegramPeer } from "@parley/testing";
import { typedCommands } from "../src/channels/text/typed-commands.ts";
import { parseInput } from "../src/operations/parse-input.ts";
import { parseQuickAnswer } from "../src/operations/quick-answer.ts";
import { startGatewayStack, type GatewayStack, type Replica } from "./support/stack.ts";

let stack: GatewayStack;
let peer: TelegramPeer;
/** Starts a replica of the gateway; all have the same account. */
let startReplica: (name: string) => Promise<Replica>;
let replica: Replica;
/** Ends the turns that wait for a decision, at the end. */
const ended = Promise.withResolvers<void>();

describe("approvals on channels", () => {
  before(async () => {
    stack = await startGatewayStack();
    peer = await startTelegramPeer();
    const settings = parseSettings(
      `[session]\npolicy = "singleton"\n[channels.telegram.main]\ntoken_env = "PARLEY_CHANNEL_T"\napi_root = "${peer.url}"\nowners = ["42"]\nallow_from = ["43"]\ngroups = ["-7"]`,
      "test",
    );
    const config = { settings, channelSecrets: new Map([["PARLEY_CHANNEL_T", peer.token]]) };
    startReplica = (name) => stack.gateway({ name, config });
    replica = await startReplica("first");
    await peer.until("the menu", () => (peer.commands.length > 0 ? true : null));
  });
  after(async () => {
    ended.resolve();
    await peer.close();
    await stack[Symbol.asyncDispose]();
  });

  /** A turn whose call asks for an approval in the chat; returns the message with the buttons. */
  async function asked(id: string, conversation = "42", expiresInMs = 600_000) {
    const core = await stack.stack.bus("agent-core");
    const gateway = await stack.stack.bus("channel-gateway");
    const { epoch } = stack.agent;
    const begun = Promise.withResolvers<string>();
    stack.agent.script = async (said, { turnId }) => {
      if (said === `ask ${id}`) {
        begun.resolve(turnId);
        await ended.promise;
      }
      return { deltas: ["ok"] };
    };
    const message: InboundMessage = {
      channel: "telegram",
      account: "main",
      externalId: `m-${id}`,
      conversation,
      contact: { id: "42" },
      role: "owner",
      origin: "user",
      parts: [{ type: "text", text: `ask ${id}` }],
      replyTo: null,
    };
    await gateway.request(store.inboxPut, { sessionKey: `approval-${id}`, message });
    const turnId = await begun.promise;
    await core.request(store.stepCommit, {
      opId: randomUUID(),
      epoch,
      turnId,
      n: 1,
      model: "test",
      stopReason: "tool_use",
      usage: noUsage,
      parts: [{ type: "text", text: "…" }],
      results: 0,
      toolCalls: [{ callId: id, tool: "exec", class: "once", input: '{"command":"rm x"}' }],
      outgoing: [],
      finish: null,
    });
    const before = peer.sent.length;
    await core.request(store.approvalRequest, {
      opId: randomUUID(),
      epoch,
      turnId,
      n: 2,
      id,
      tool: "exec",
      callHash: "a".repeat(64),
      summary: "exec: ls",
      reason: "It needs approval.",
      expiresInMs,
      outgoing: [
        {
          address: { channel: "telegram", account: "main", conversation },
          text: `May I? /approve ${id}`,
          actions: [
            { label: "Approve", input: `/approve ${id}` },
            { label: "Deny", input: `/deny ${id}` },
          ],
          expiresInMs: 600_000,
        },
      ],
    });
    await peer.untilSent(before + 1);
    return peer.sent[before] ?? assert.fail();
  }

  test("decides once when the owner presses twice, and shows in the message who decided", async () => {
    const { messageId, buttons } = await asked("AAAAA");
    assert.deepEqual(buttons, [
      { text: "Approve", data: "/approve AAAAA" },
      { text: "Deny", data: "/deny AAAAA" },
    ]);
    const presses = [peer.press(messageId, "Approve"), peer.press(messageId, "Deny")];
    const [first, second] = await Promise.all(presses.map((answer) => answer()));
    assert.match(first ?? "", /^Allowed/);
    assert.match(second ?? "", /already allowed by User 42/);
    const message = peer.sent.find((each) => each.messageId === messageId);
    await peer.until("the edit", () => (message?.buttons.length === 0 ? true : null));
    assert.match(message?.text ?? "", /User 42: Allowed/);
  });

  test("refuses a press by a user or a stranger and keeps the buttons", async () => {
    const { messageId } = await asked("BBBBB", "-7");
    assert.match(await peer.press(messageId, "Approve", 43)(), /for the owner only/);
    assert.match(await peer.press(messageId, "Approve", 99)(), /for the owner only|may not decide/);
    assert.equal(peer.sent.find((each) => each.messageId === messageId)?.buttons.length, 2);
    assert.match(await peer.press(messageId, "Deny")(), /^Denied/);
  });

  test("answers a press that comes too late, and removes the buttons", async () => {
    const { messageId } = await asked("EEEEE", "42", 1);
    assert.match(await peer.press(messageId, "Approve")(), /expired/);
    const message = peer.sent.find((each) => each.messageId === messageId);
    await peer.until("the edit", () => (message?.buttons.length === 0 ? true : null));
    const gateway = await stack.stack.bus("channel-gateway");
    const { approvals } = await gateway.request(store.approvalList, { pending: false, limit: 10 });
    assert.notEqual(approvals.find(({ id }) => id === "EEEEE")?.state, "allowed");
  });

  test("decides once when the button is pressed after a restart on another replica", async () => {
    const { messageId } = await asked("FFFFF");
    await replica.close();
    const presses = [peer.press(messageId, "Deny"), peer.press(messageId, "Approve")];
    replica = await startReplica("second");
    const [first, second] = await Promise.all(presses.map((answer) => answer()));
    assert.match(first ?? "", /^Denied/);
    assert.match(second ?? "", /already denied by User 42/);
  });

  test("decides once when two replicas receive presses at the same time", async () => {
    const { messageId } = await asked("GGGGG");
    const settings = parseSettings(
      `[session]\npolicy = "singleton"\n[channels.telegram.main]\nmode = "webhook"\ntoken_env = "PARLEY_CHANNEL_T"\nwebhook_secret_env = "PARLEY_CHANNEL_W"\napi_root = "${peer.url}"\nowners = ["42"]`,
      "test",
    );
    const channelSecrets = new Map([
      ["PARLEY_CHANNEL_T", peer.token],
      ["PARLEY_CHANNEL_W", "s3cret"],
    ]);
    const called = await Promise.all(
      ["third", "fourth"].map((name) => stack.gateway({ name, config: { settings, channelSecrets } })),
    );
    const answered = () => peer.calls.filter(({ method }) => method === "answerCallbackQuery");
    const before = answered().length;
    const responses = await Promise.all(
      ["/approve GGGGG", "/deny GGGGG"].map((data, index) =>
        fetch(`${called[index]?.url}/channels/telegram/main/webhook`, {
          method: "POST",
          headers: { "content-type": "application/json", "x-telegram-bot-api-secret-token": "s3cret" },
          body: JSON.stringify({
            update_id: 900 + index,
            callback_query: {
              id: `at-once-${index}`,
              from: { id: 42, is_bot: false, first_name: "User 42" },
              message: { message_id: messageId, chat: { id: 42, type: "private" }, text: "May I?" },
              data,
            },
          }),
        }),
      ),
    );
    assert.deepEqual(
      responses.map(({ status }) => status),
      [200, 200],
    );
    const texts = answered()
      .slice(before)
      .map(({ parameters }) => String(parameters["text"]));
    assert.equal(texts.length, 2);
    assert.equal(texts.filter((text) => /^(?:Allowed|Denied)/.test(text)).length, 1, texts.join("; "));
    assert.equal(
      texts.filter((text) => /already (?:allowed|denied) by User 42/.test(text)).length,
      1,
      texts.join("; "),
    );
    await Promise.all(called.map((each) => each.close()));
  });

  test("decides by y, and by n with a reason, only while a question is open in the chat", async () => {
    const sent = async (text: string) => {
      const count = peer.sent.length;
      peer.say(text);
      await peer.untilSent(count + 1);
      return peer.sent[count]?.text ?? "";
    };
    await asked("CCCCC");
    assert.match(await sent("n, too risky"), /^Denied/);
    const gateway = await stack.stack.bus("channel-gateway");
    const { approvals } = await gateway.request(store.approvalList, { pending: false, limit: 10 });
    assert.equal(approvals.find(({ id }) => id === "CCCCC")?.state, "denied");
    await asked("DDDDD");
    assert.match(await sent("Y"), /^Allowed/);
    peer.say("y");
    await stack.agent.answered((parts) => textOf(parts) === "y");
  });
});

test("parses y and n, and leaves other texts to the agent", () => {
  assert.deepEqual(parseQuickAnswer(" Yes! "), { decision: "allow" });
  assert.deepEqual(parseQuickAnswer("n"), { decision: "deny" });
  assert.deepEqual(parseQuickAnswer("no: not there"), { decision: "deny", message: "not there" });
  for (const text of ["yes, but later", "now", "note this", "", "y?"]) assert.equal(parseQuickAnswer(text), undefined);
});

test("names commands as they are typed on a channel with a prefix", () => {
  assert.equal(
    typedCommands("Use /approve A1 or (/deny A1).\n```\n/approve\n```\nSee https://x.y/help and /etc/stop", "!"),
    "Use !approve A1 or (!deny A1).\n```\n/approve\n```\nSee https://x.y/help and /etc/stop",
  );
  assert.equal(typedCommands("/help", undefined), "/help");
  assert.deepEqual(parseInput("!approve A1", "!"), { kind: "command", command: { name: "/approve", rest: "A1" } });
  assert.equal(parseInput("!approve A1").kind, "message");
  assert.equal(parseInput("!!", "!").kind, "message");
});
