// What the owner is told about an account that cannot receive or send: by the list of accounts and by its log.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { parseSettings } from "@parley/chassis";
import { store, type accountLogs, type operations, type OutputOf } from "@parley/contracts";
import { startSlackPeer, startTelegramPeer, startWhatsAppPeer } from "@parley/testing";
import { pollUntil } from "@parley/testing/until";
import { Platform } from "./support/platform.ts";
import { startGatewayStack, type GatewayStack, type Replica } from "./support/stack.ts";

type Account = operations.ChannelAccountStatus;

let stack: GatewayStack;
before(async () => {
  stack = await startGatewayStack();
});
after(() => stack[Symbol.asyncDispose]());

async function untilListed(gateway: Replica, channel: string, matches: (account: Account) => boolean) {
  return pollUntil(async () => {
    const { accounts } = await gateway.json<{ accounts: Account[] }>("/api/channels");
    return accounts.find((each) => each.channel === channel && matches(each));
  }, `the expected state of ${channel}`);
}

describe("accounts that the platform calls", () => {
  test("are checked when they start, before anything is delivered", async () => {
    await using telegram = await startTelegramPeer();
    await using slack = await startSlackPeer();
    await using whatsapp = await startWhatsAppPeer();
    slack.revoke(slack.tokens.bot);
    const settings = parseSettings(
      `
[channels.telegram.hook]
mode = "webhook"
token_env = "PARLEY_CHANNEL_T"
webhook_secret_env = "PARLEY_CHANNEL_S"
api_root = "${telegram.url}"
[channels.slack.hook]
mode = "events"
token_env = "PARLEY_CHANNEL_SLACK"
signing_secret_env = "PARLEY_CHANNEL_S"
api_root = "${slack.url}"
[channels.whatsapp.hook]
token_env = "PARLEY_CHANNEL_W"
app_secret_env = "PARLEY_CHANNEL_S"
verify_token_env = "PARLEY_CHANNEL_S"
phone_number_id = "${whatsapp.phoneNumberId}"
api_root = "${whatsapp.url}"
`,
      "test",
    );
    const channelSecrets = new Map([
      ["PARLEY_CHANNEL_T", telegram.token],
      ["PARLEY_CHANNEL_SLACK", slack.tokens.bot],
      ["PARLEY_CHANNEL_W", whatsapp.token],
      ["PARLEY_CHANNEL_S", "a secret"],
    ]);
    // Telegram does not answer at first.
    telegram.fail("getMe", { kind: "server_error" });
    const gateway = await stack.gateway({ config: { settings, channelSecrets } });
    const refused = await untilListed(gateway, "slack", ({ state }) => state === "disabled");
    assert.match(refused.reason ?? "", /token refused by Slack .*retried every 5 minutes/);
    assert.equal((await untilListed(gateway, "telegram", ({ state }) => state === "connected")).as, "@parley_bot");
    const { as } = await untilListed(gateway, "whatsapp", ({ state }) => state === "connected");
    assert.equal(as, "15550783881 (Stand-in)");
    await gateway.close();
  });
});

describe("a text that the platform refuses", () => {
  test("waits with its reason, which the list and the log tell, and is sent when that is corrected", async () => {
    const platform = new Platform("refusing");
    const reason = "token_env: a scope is missing (missing_scope)";
    let isCorrected = false;
    platform.fate = async () => (isCorrected ? null : { state: "retry", afterMs: 20, reason });
    const accounts = [platform.account({})];
    const gateway = await stack.gateway({ config: { logLevel: "warn" }, overrides: { accounts } });
    const to = { channel: "test", account: "refusing", conversation: "c" };
    for (const text of ["one", "two"]) await gateway.call("/api/send", { body: { ...to, text } });
    const found = await untilListed(gateway, "test", (each) => each.reason !== null);
    assert.deepEqual([found.waiting, found.reason], [2, reason]);
    type Line = OutputOf<typeof accountLogs>["lines"][number];
    const { lines } = await gateway.json<{ lines: Line[] }>("/api/channels/test/refusing/logs");
    const told = lines.filter(({ message }) => message === "text not sent: retried later");
    assert.deepEqual(
      told.map(({ fields }) => fields["reason"]),
      [reason],
      "once for a text",
    );
    isCorrected = true;
    await platform.until(() => platform.sent.length === 2);
    assert.deepEqual(
      platform.sent.map(({ text }) => text),
      ["one", "two"],
    );
    const after = await untilListed(gateway, "test", ({ waiting }) => waiting === 0);
    assert.equal(after.reason, null);
    await gateway.close();
  });
});

describe("an account whose connection fails", () => {
  test("is reported to the owner once on another channel, and again when it works", async () => {
    const [home, broken] = [new Platform("home"), new Platform("broken")];
    let works = false;
    const connectable = broken.account({ owners: ["boss"] });
    const connect = connectable.adapter.connect?.bind(connectable.adapter);
    connectable.adapter.connect = async (host, lease) => {
      if (!works) throw new Error("the platform is away");
      host.report({ state: "connected", as: "broken" });
      await connect?.(host, lease);
    };
    const outageTimes = { checkEveryMs: 20, downForMs: { disabled: 50, failing: 50 } };
    const accounts = [home.account({ owners: ["boss"] }), connectable];
    const gateway = await stack.gateway({ name: "outage", overrides: { accounts, outageTimes } });
    // No owner can be reached yet: the gateway goes on trying.
    await untilListed(gateway, "test", ({ account, state }) => account === "broken" && state === "failing");
    home.say({ conversation: "c", from: "boss", text: "hello" });
    const notices = () => home.sent.map(({ text }) => text).filter((text) => text.includes("test:broken"));
    await home.until(() => notices().length === 1);
    assert.match(
      notices()[0] ?? "",
      /^The account test:broken cannot receive or send messages: the platform is away\./,
    );

    // Another gateway finds the same.
    const bus = await stack.stack.bus("channel-gateway");
    const again = { channel: "test", account: "broken", isDown: true, text: "test:broken again", expiresInMs: 60_000 };
    assert.deepEqual(await bus.request(store.accountOutage, again), { told: true });
    works = true;
    await home.until(() => notices().length === 2);
    assert.equal(notices()[1], "The account test:broken works again.");
    assert.deepEqual(broken.sent, [], "not on the account itself");
    await gateway.close();
  });
});
