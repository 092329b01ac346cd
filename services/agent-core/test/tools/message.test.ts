// Where `message` sends to, in whichever way that was said.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { ReplyAddress } from "@parley/contracts";
import { Cleanup } from "@parley/testing";
import { messageTool } from "../../src/tools/message.ts";
import { openRoom, type Room } from "./room.ts";

const cleanup = new Cleanup();
let room: Room;

before(async () => {
  room = await openRoom(cleanup);
});
after(() => cleanup[Symbol.asyncDispose]());

/** What goes out of a turn that answers the conversation `irc:net:owner`. */
async function sent(args: object): Promise<ReplyAddress[] | string> {
  const outcome = await messageTool.run(
    JSON.stringify({ text: "hello", ...args }),
    await room.call("message", "idempotent", "net"),
  );
  assert.ok(outcome.status === "done" || outcome.status === "failed");
  return outcome.status === "failed" ? outcome.content : (outcome.outgoing ?? []).map(({ address }) => address);
}

const at = (channel: string, account: string, conversation: string) => [{ channel, account, conversation }];

describe("a message goes", () => {
  const ways: [what: string, args: object, to: ReplyAddress[]][] = [
    ["to the conversation at work where nothing is said", {}, at("irc", "net", "owner")],
    ["there too where its channel is named", { channel: "irc" }, at("irc", "net", "owner")],
    ["to the address that `to` names", { to: "telegram:main:-100:7" }, at("telegram", "main", "-100:7")],
    ["to the account default where `to` names none", { to: "telegram:42" }, at("telegram", "default", "42")],
    ["to a chat of the channel and account at work", { chat_id: "#team" }, at("irc", "net", "#team")],
    ["to a chat of another channel", { channel: "telegram", chat_id: "42" }, at("telegram", "default", "42")],
    ["where `to` says, whatever else is said", { to: "irc:net:#a", chat_id: "#b" }, at("irc", "net", "#a")],
  ];
  for (const [what, args, to] of ways) {
    test(what, async () => assert.deepEqual(await sent(args), to));
  }
});

test("what names no conversation is refused, with an address that is one", async () => {
  for (const args of [{ to: "bob" }, { to: "telegram:" }, { to: ":x:y" }, { to: "a::b" }, { channel: "telegram" }]) {
    const refused = await sent(args);
    assert.ok(typeof refused === "string", JSON.stringify(refused));
    assert.match(refused, /Nothing was sent: .* such as telegram:default:12345/);
  }
});

test("an account that nobody sends for is refused, with those there are; the one at work needs no settings", async () => {
  for (const to of ["telegram:work:42", "signal:default:42", "api:default:x"]) {
    const refused = await sent({ to });
    assert.ok(typeof refused === "string", JSON.stringify(refused));
    assert.match(
      refused,
      /^Nothing was sent: .* there is no account .*: there are irc:net, telegram:default, telegram:main\.$/,
    );
  }
  const call = await room.call("message", "idempotent", "elsewhere");
  const outcome = await messageTool.run(JSON.stringify({ text: "hello", to: "irc:elsewhere:#team" }), call);
  assert.ok(outcome.status === "done", JSON.stringify(outcome));
});
