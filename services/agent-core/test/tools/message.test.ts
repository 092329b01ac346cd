// How `message` resolves its address from each form of its arguments.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { ReplyAddress } from "@parley/contracts";
import { Cleanup } from "@parley/testing";
import { messageTool } from "../../src/tools/message.ts";
import { openToolContext, type ToolContextFixture } from "./tool-context.ts";

const cleanup = new Cleanup();
let room: ToolContextFixture;

before(async () => {
  room = await openToolContext(cleanup);
});
after(() => cleanup[Symbol.asyncDispose]());

/** The addresses, or the error, of a message sent from a turn that answers the conversation `irc:net:owner`. */
async function sent(args: object): Promise<ReplyAddress[] | string> {
  const outcome = await messageTool.run(
    JSON.stringify({ text: "hello", ...args }),
    await room.call("message", "idempotent", "net"),
  );
  assert.ok(outcome.status === "done" || outcome.status === "failed");
  return outcome.status === "failed" ? outcome.content : (outcome.outgoing ?? []).map(({ address }) => address);
}

const at = (channel: string, account: string, conversation: string) => [{ channel, account, conversation }];

// design: 000.17b
describe("message is sent", () => {
  const ways: [what: string, args: object, to: ReplyAddress[]][] = [
    ["to the current conversation when no address is given", {}, at("irc", "net", "owner")],
    ["to the current conversation when only its channel is given", { channel: "irc" }, at("irc", "net", "owner")],
    ["to the address in `to`", { to: "telegram:main:-100:7" }, at("telegram", "main", "-100:7")],
    ["to the account default when `to` contains no account", { to: "telegram:42" }, at("telegram", "default", "42")],
    ["to the only account of a channel when `to` contains no account", { to: "signal:7" }, at("signal", "home", "7")],
    ["to the turn's account when `to` contains no account", { to: "irc:#team" }, at("irc", "net", "#team")],
    ["to a chat of a channel with one account", { channel: "signal", chat_id: "7" }, at("signal", "home", "7")],
    ["to a chat of the current channel and account", { chat_id: "#team" }, at("irc", "net", "#team")],
    ["to a chat of another channel", { channel: "telegram", chat_id: "42" }, at("telegram", "default", "42")],
    [
      "to the address in `to` even when `chat_id` is given",
      { to: "irc:net:#a", chat_id: "#b" },
      at("irc", "net", "#a"),
    ],
  ];
  for (const [what, args, to] of ways) {
    test(what, async () => assert.deepEqual(await sent(args), to));
  }
});

test("rejects an invalid address and shows an example of a valid one", async () => {
  for (const args of [{ to: "bob" }, { to: "telegram:" }, { to: ":x:y" }, { to: "a::b" }, { channel: "telegram" }]) {
    const refused = await sent(args);
    assert.ok(typeof refused === "string", JSON.stringify(refused));
    assert.match(refused, /Not sent: .* such as telegram:main:4711/);
  }
});

test("rejects an unknown account, lists the configured ones, and accepts the turn's own", async () => {
  for (const to of ["telegram:work:42", "signal:default:42", "api:default:x"]) {
    const refused = await sent({ to });
    assert.ok(typeof refused === "string", JSON.stringify(refused));
    assert.match(
      refused,
      /^Not sent: .* there is no account .* \(configured: irc:net, signal:home, telegram:default, telegram:main\)\.$/,
    );
  }
  const call = await room.call("message", "idempotent", "elsewhere");
  const outcome = await messageTool.run(JSON.stringify({ text: "hello", to: "irc:elsewhere:#team" }), call);
  assert.ok(outcome.status === "done", JSON.stringify(outcome));
});
