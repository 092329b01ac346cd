// The fake of Discord is held to what discord.js expects, which was not written for it.
import assert from "node:assert/strict";
import { once } from "node:events";
import { describe, test } from "node:test";
import {
  ActionRowBuilder,
  ButtonBuilder,
  ButtonStyle,
  Client,
  DiscordAPIError,
  Events,
  GatewayIntentBits,
  Partials,
  REST,
  Routes,
  type Interaction,
  type Message,
} from "discord.js";
import { startDiscordPeer, type DiscordPeer } from "../src/peers/discord/index.ts";

const intents = [
  GatewayIntentBits.Guilds,
  GatewayIntentBits.GuildMessages,
  GatewayIntentBits.DirectMessages,
  GatewayIntentBits.MessageContent,
];

function clientFor(peer: DiscordPeer, wanted = intents): Client {
  return new Client({
    intents: wanted,
    partials: [Partials.Channel],
    rest: { api: `http://127.0.0.1:${peer.port}/api`, version: "10", retries: 0 },
  });
}

/** A client that is ready, with the texts that it receives. */
async function readyClient(peer: DiscordPeer) {
  const client = clientFor(peer);
  const texts: string[] = [];
  client.on(Events.MessageCreate, (message) => {
    if (!message.author.bot) texts.push(message.content);
  });
  const ready = once(client, Events.ClientReady);
  await client.login(peer.token);
  await ready;
  return {
    client,
    texts,
    async received(count: number): Promise<readonly string[]> {
      while (texts.length < count) await once(client, Events.MessageCreate);
      return texts;
    },
    [Symbol.asyncDispose]: () => client.destroy(),
  };
}

async function failure(call: Promise<unknown>): Promise<DiscordAPIError> {
  const error = await call.then(
    () => null,
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof DiscordAPIError, String(error));
  return error;
}

function restFor(peer: DiscordPeer): REST {
  return new REST({ api: `http://127.0.0.1:${peer.port}/api`, version: "10", retries: 0 }).setToken(peer.token);
}

describe("the fake of Discord, used by discord.js", { concurrency: true }, () => {
  test("receives messages, replies to them and edits the reply", async () => {
    await using peer = await startDiscordPeer();
    await using bot = await readyClient(peer);
    bot.client.on(Events.MessageCreate, (message: Message) => {
      if (message.author.bot) return;
      void message.reply(`you said ${message.cleanContent}`).then((sent) => sent.edit(`${sent.content}!`));
    });
    const asked = peer.say(`<@${peer.bot.id}> hello`, { channel: peer.channelId });
    peer.say("in private");
    await peer.until("both edits", () =>
      peer.sent.filter(({ editedAt }) => editedAt !== null).length === 2 ? true : null,
    );
    const [inGuild, direct] = peer.sent;
    assert.equal(inGuild?.content, "you said @parley hello!");
    assert.equal(inGuild?.replyToId, asked);
    assert.equal(direct?.channelId, peer.directChannelId());
    assert.equal(bot.client.user?.id, peer.bot.id);
  });

  test("sends a message with the same nonce once, and again after the nonce was forgotten", async () => {
    await using peer = await startDiscordPeer();
    const rest = restFor(peer);
    const send = () =>
      rest.post(Routes.channelMessages(peer.channelId), { body: { content: "a", nonce: "n-1", enforce_nonce: true } });
    const [first, second] = [(await send()) as { id: string }, (await send()) as { id: string }];
    assert.equal(first.id, second.id);
    assert.equal(peer.repeatedSends, 1);
    peer.forgetNonces();
    await send();
    assert.equal(peer.sent.length, 2);
  });

  test("refuses what Discord refuses, with its error codes", async () => {
    await using peer = await startDiscordPeer();
    const rest = restFor(peer);
    const send = (body: object, channel = peer.channelId) => rest.post(Routes.channelMessages(channel), { body });
    const tooLong = await failure(send({ content: "a".repeat(2_001) }));
    assert.equal(tooLong.code, 50_035);
    assert.match(tooLong.message, /2000 or fewer in length/);
    assert.equal((await failure(send({ content: " " }))).code, 50_006);
    assert.equal((await failure(send({ content: "a", nonce: "n".repeat(26) }))).code, 50_035);
    assert.equal((await failure(send({ content: "a", message_reference: { message_id: "1" } }))).code, 50_035);
    assert.equal((await failure(send({ content: "a" }, "123"))).code, 10_003);
    assert.equal((await failure(send({ content: "a" }, "nonsense"))).code, 50_035);
    peer.withoutFiles.add(peer.channelId);
    const files = [{ name: "a.txt", data: Buffer.from("a") }];
    assert.equal((await failure(rest.post(Routes.channelMessages(peer.channelId), { body: {}, files }))).code, 50_013);
    assert.equal((await failure(rest.setToken("wrong").get(Routes.user()))).status, 401);
    assert.equal(peer.sent.length, 0);
  });

  test("uploads and downloads files", async () => {
    await using peer = await startDiscordPeer();
    await using bot = await readyClient(peer);
    const channel = await bot.client.channels.fetch(peer.channelId);
    assert.ok(channel?.isSendable());
    const sent = await channel.send({
      content: "a file",
      files: [{ attachment: Buffer.from("content"), name: "a.txt" }],
    });
    assert.equal(peer.sent[0]?.files[0]?.content.toString(), "content");
    const url = sent.attachments.first()?.url ?? "";
    assert.equal(await (await fetch(url)).text(), "content");
    assert.equal((await fetch(url.split("?")[0] ?? "")).status, 404, "a link without its signature");
  });

  test("resumes without loss or repetition after lost connections and op 7", async () => {
    await using peer = await startDiscordPeer();
    await using bot = await readyClient(peer);
    peer.say("one");
    await bot.received(1);
    for (const [index, how] of (["drop", "reconnect", 4000] as const).entries()) {
      peer.gateway.disconnect(how);
      peer.say(`while away ${index}`);
      await peer.until("a resume", () => (peer.gateway.resumed === index + 1 ? true : null));
      await bot.received(index + 2);
    }
    assert.deepEqual(bot.texts, ["one", "while away 0", "while away 1", "while away 2"]);
    assert.equal(peer.gateway.identified, 1);
  });

  test("gives a client whose session is unknown a new one, without the missed messages", async () => {
    await using peer = await startDiscordPeer();
    await using bot = await readyClient(peer);
    peer.gateway.forgetSessions();
    peer.gateway.disconnect("drop");
    peer.say("missed");
    await peer.until("a new session", () =>
      peer.gateway.identified === 2 && peer.gateway.connected === 1 ? true : null,
    );
    peer.say("after");
    await bot.received(1);
    assert.deepEqual(bot.texts, ["after"]);
    assert.equal(peer.gateway.resumesRefused, 1);
  });

  test("replaces a connection whose heartbeats are not acknowledged", async () => {
    await using peer = await startDiscordPeer({ heartbeatMs: 200 });
    await using bot = await readyClient(peer);
    peer.gateway.muted = true;
    await peer.until("a resume", () => (peer.gateway.resumed === 1 ? true : null));
    peer.gateway.muted = false;
    peer.say("hello");
    assert.deepEqual(await bot.received(1), ["hello"]);
  });

  test("delivers buttons and slash commands, and shows the responses", async () => {
    await using peer = await startDiscordPeer();
    await using bot = await readyClient(peer);
    bot.client.on(Events.InteractionCreate, (interaction: Interaction) => {
      if (interaction.isChatInputCommand()) {
        void interaction
          .deferReply({ flags: "Ephemeral" })
          .then(() => interaction.editReply(`ran ${interaction.commandName} ${interaction.options.getString("text")}`));
      } else if (interaction.isButton()) {
        void interaction
          .deferUpdate()
          .then(() => interaction.editReply({ content: `pressed ${interaction.customId}`, components: [] }))
          .then(() => interaction.followUp({ content: "done", flags: "Ephemeral" }));
      }
    });
    await bot.client.application?.commands.set([{ name: "status", description: "show the status" }]);
    assert.equal(peer.commands[0]?.name, "status");
    const used = peer.slash("status", "now", { channel: peer.channelId });
    await peer.until("the response", () => (used.responses[0]?.content === "ran status now" ? true : null));
    assert.deepEqual([used.acknowledged, used.responses[0]?.ephemeral], [5, true]);

    const channel = await bot.client.channels.fetch(peer.channelId);
    assert.ok(channel?.isSendable());
    const button = new ButtonBuilder().setCustomId("yes-1").setLabel("Yes").setStyle(ButtonStyle.Primary);
    const asked = await channel.send({
      content: "?",
      components: [new ActionRowBuilder<ButtonBuilder>().addComponents(button)],
    });
    const pressed = peer.press(asked.id, "Yes");
    await peer.until("the second response", () => (pressed.responses.length === 1 ? true : null));
    assert.equal(peer.message(asked.id)?.content, "pressed yes-1");
    assert.equal(peer.message(asked.id)?.components.length, 0);
    assert.equal(pressed.acknowledged, 6);
  });

  test("limits sends to a channel as discord.js waits for", async () => {
    const limits = { channel: { limit: 2, windowMs: 400 } };
    let nowMs = 0;
    await using peer = await startDiscordPeer({ limits, now: () => nowMs });
    const rest = restFor(peer);
    const limited: number[] = [];
    rest.on("rateLimited", ({ timeToReset }) => {
      limited.push(timeToReset);
      nowMs += 400;
    });
    const send = () => rest.post(Routes.channelMessages(peer.channelId), { body: { content: "a" } });
    await Promise.all([send(), send(), send()]);
    assert.equal(peer.sent.length, 3);
    assert.ok(limited.length > 0, "the client knew the limit from the headers");
    assert.ok(peer.calls.every(({ status }) => status === 200));
    nowMs += 400;
    peer.fail("POST /channels/{}/messages", { kind: "too_many", retryAfterSeconds: 0.2 });
    await send();
    assert.equal(peer.calls.filter(({ status }) => status === 429).length, 1);
  });

  test("closes connections with a wrong token or intents that are not allowed", async () => {
    await using peer = await startDiscordPeer({ messageContent: false });
    const client = clientFor(peer);
    await assert.rejects(client.login(peer.token), /disallowed intents/i);
    await client.destroy();
    const other = clientFor(peer, [GatewayIntentBits.Guilds]);
    await assert.rejects(other.login("wrong"), /invalid token/i);
    await other.destroy();
  });

  test("hides the content of guild messages from a client without the intent", async () => {
    await using peer = await startDiscordPeer({ messageContent: false });
    const client = clientFor(peer, [GatewayIntentBits.Guilds, GatewayIntentBits.GuildMessages]);
    const ready = once(client, Events.ClientReady);
    await client.login(peer.token);
    await ready;
    const texts: string[] = [];
    client.on(Events.MessageCreate, ({ content }) => texts.push(content));
    peer.say("secret", { channel: peer.channelId });
    peer.say("not subscribed");
    peer.say(`<@${peer.bot.id}> open`, { channel: peer.channelId });
    while (texts.length < 2) await once(client, Events.MessageCreate);
    await client.destroy();
    assert.deepEqual(texts, ["", `<@${peer.bot.id}> open`]);
  });
});
