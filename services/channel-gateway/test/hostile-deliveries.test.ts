// What anybody may send to the addresses where platforms deliver, and what a platform may send on a connection: forged, stale, replayed and
// oversized deliveries. Nothing of it reaches the agent, the account keeps working, and no secret is logged.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fastify from "fastify";
import { emailChannel, ircChannel, signalChannel, telegramChannel } from "@parley/contracts";
import { freePort } from "@parley/local";
import { startSignalPeer, startSlackPeer, startTelegramPeer } from "@parley/testing";
import { createEmail } from "../src/channels/email/index.ts";
import { createIrc } from "../src/channels/irc/index.ts";
import { createSignal } from "../src/channels/signal/index.ts";
import { createTelegram } from "../src/channels/telegram/index.ts";
import { TestHost } from "./support/channel-host.ts";
import { connectedDiscord, keepConnected } from "./support/discord.ts";
import { answersTo, listenLmtp } from "./support/mail.ts";
import { letIn, startScriptedIrc } from "./support/scripted-irc.ts";
import { serveSlack, slackAdapter } from "./support/slack.ts";
import { serveWhatsApp } from "./support/whatsapp.ts";

/** What became of a delivery: a status of HTTP, or the last one of LMTP. */
type Status = number;

interface Endpoint extends AsyncDisposable {
  host: TestHost;
  secrets: readonly string[];
  /** A message as the platform delivers it: the same each time. Its answers, and those of the same message when something is wrong. */
  genuine: (text: string) => Promise<Status>;
  hostile: Readonly<Record<string, readonly [deliver: () => Promise<Status>, expected: Status]>>;
}

const minute = 60_000;
const nowSeconds = () => Math.floor(Date.now() / 1_000);
const large = "x".repeat(4 * 1024 * 1024);

async function post(url: string, body: string, headers: Record<string, string>): Promise<Status> {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body,
  });
  await response.body?.cancel();
  return response.status;
}

async function telegram(): Promise<Endpoint> {
  const peer = await startTelegramPeer();
  const secret = "hook-secret_1";
  const settings = telegramChannel.settings.parse({
    token_env: "PARLEY_CHANNEL_T",
    api_root: peer.url,
    mode: "webhook",
    webhook_secret_env: "PARLEY_CHANNEL_S",
  });
  const host = new TestHost();
  const app = fastify({ forceCloseConnections: true });
  createTelegram("main", settings, { token_env: peer.token, webhook_secret_env: secret }).routes?.(app, host);
  const url = `${await app.listen({ port: 0, host: "127.0.0.1" })}/channels/telegram/main/webhook`;
  const update = (text: string) => {
    const from = { id: 42, is_bot: false, first_name: "Ann" };
    const message = { message_id: 1, date: nowSeconds(), chat: { id: 42, type: "private" }, from, text };
    return JSON.stringify({ update_id: 1, message });
  };
  const header = "x-telegram-bot-api-secret-token";
  return {
    host,
    secrets: [peer.token, secret],
    genuine: (text) => post(url, update(text), { [header]: secret }),
    hostile: {
      unsigned: [() => post(url, update("evil"), {}), 401],
      forged: [() => post(url, update("evil"), { [header]: `${secret}x` }), 401],
      oversized: [() => post(url, update(large), { [header]: secret }), 413],
    },
    async [Symbol.asyncDispose]() {
      await app.close();
      await peer.close();
    },
  };
}

async function slack(): Promise<Endpoint> {
  const served = await serveSlack({ mode: "events", signing_secret_env: "PARLEY_CHANNEL_S" });
  const { peer, host, url } = served;
  const message = (text: string) => {
    const event = {
      type: "message",
      channel: "D0ANN",
      channel_type: "im",
      ts: "1700000000.000100",
      user: "U0ANN",
      text,
    };
    return JSON.stringify({ type: "event_callback", event_id: "Ev1", event });
  };
  const signed = (body: string, atMs = Date.now()) => post(url, body, peer.sign(body, atMs));
  return {
    host,
    secrets: [peer.tokens.bot, peer.tokens.app, peer.signingSecret],
    genuine: (text) => signed(message(text)),
    hostile: {
      unsigned: [() => post(url, message("evil"), {}), 401],
      forged: [() => post(url, message("evil"), peer.sign(message("good"))), 401],
      stale: [() => signed(message("evil"), Date.now() - 6 * minute), 401],
      "ahead of time": [() => signed(message("evil"), Date.now() + 6 * minute), 401],
      oversized: [() => signed(message(large)), 413],
    },
    [Symbol.asyncDispose]: () => served[Symbol.asyncDispose](),
  };
}

async function whatsapp(): Promise<Endpoint> {
  const served = await serveWhatsApp();
  const { peer, host, url } = served;
  const message = (body: string, ageSeconds = 0) => {
    const content = { id: "wamid.1", from: "491700000042", timestamp: String(nowSeconds() - ageSeconds) };
    const metadata = { phone_number_id: peer.phoneNumberId, display_phone_number: "1" };
    const value = { metadata, messages: [{ ...content, type: "text", text: { body } }] };
    return { object: "whatsapp_business_account", entry: [{ id: "1", changes: [{ field: "messages", value }] }] };
  };
  const header = "x-hub-signature-256";
  const signed = (delivery: object) => {
    const { body, signature } = peer.signed(delivery);
    return post(url, body, { [header]: signature });
  };
  return {
    host,
    secrets: [peer.token, peer.appSecret],
    genuine: (text) => signed(message(text)),
    hostile: {
      unsigned: [() => post(url, JSON.stringify(message("evil")), {}), 401],
      forged: [
        () => post(url, JSON.stringify(message("evil")), { [header]: peer.signed(message("good")).signature }),
        401,
      ],
      // The platform repeats a delivery until it is acknowledged, so an old one is acknowledged and ignored.
      stale: [() => signed(message("evil", 9 * 86_400)), 200],
      oversized: [() => signed(message(large)), 413],
    },
    [Symbol.asyncDispose]: () => served[Symbol.asyncDispose](),
  };
}

async function email(): Promise<Endpoint> {
  const port = await freePort();
  const settings = emailChannel.settings.parse({
    address: "agent@test.local",
    consent: true,
    mode: "lmtp",
    lmtp_port: port,
    max_mail_bytes: 20_000,
    authserv_id: "mx.test.local",
    smtp_host: "127.0.0.1",
    smtp_tls: "none",
  });
  const host = new TestHost();
  const listener = await listenLmtp(createEmail("main", settings, {}), host);
  const deliver = async (result: string, text: string): Promise<Status> => {
    const mail = [
      `Authentication-Results: ${result} header.from=test.local`,
      "From: Ann <ann@test.local>",
      "To: agent@test.local",
      "Message-ID: <1@test.local>",
      "",
      ...(text.match(/.{1,70}/g) ?? []),
    ];
    const commands = ["LHLO x", "MAIL FROM:<ann@test.local>", "RCPT TO:<agent@test.local>", "DATA"];
    return Number((await answersTo(port, [...commands, `${mail.join("\r\n")}\r\n.`])).at(-1));
  };
  return {
    host,
    secrets: [],
    genuine: (text) => deliver("mx.test.local; dmarc=pass", text),
    hostile: {
      // Without an answer to the forged address.
      unsigned: [() => deliver("mx.test.local; dmarc=none", "evil"), 250],
      forged: [() => deliver("mx.evil.test; dmarc=pass", "evil"), 250],
      oversized: [() => deliver("mx.test.local; dmarc=pass", "x".repeat(30_000)), 552],
    },
    [Symbol.asyncDispose]: () => listener[Symbol.asyncDispose](),
  };
}

describe("a delivery to the gateway", { concurrency: true }, () => {
  for (const [channel, open] of Object.entries({ telegram, slack, whatsapp, email })) {
    test(`is refused or ignored when it is forged, stale or too large (${channel})`, async () => {
      await using endpoint = await open();
      for (const [what, [deliver, expected]] of Object.entries(endpoint.hostile)) {
        assert.equal(await deliver(), expected, what);
      }
      assert.equal(endpoint.host.attempts, 0, "nothing reaches the gateway");
      const accepted = channel === "email" ? 250 : 200;
      assert.deepEqual([await endpoint.genuine("good"), await endpoint.genuine("good")], [accepted, accepted]);
      assert.deepEqual(
        endpoint.host.texts.map((text) => text.trim()),
        ["good"],
        "a replayed delivery is the same message",
      );
      for (const secret of endpoint.secrets) assert.ok(!endpoint.host.logText.includes(secret));
    });
  }
});

interface Connection extends AsyncDisposable {
  host: TestHost;
  /** The platform sends something that is larger than it may be. */
  overflow: () => unknown;
  say: (text: string) => unknown;
}

async function slackSocket(): Promise<Connection> {
  const peer = await startSlackPeer();
  const host = new TestHost();
  const held = keepConnected(host, slackAdapter(peer));
  await peer.untilConnected();
  return {
    host,
    overflow: async () => {
      const { opened } = peer.sockets;
      peer.sendRaw(JSON.stringify({ type: "events_api", envelope_id: "e", payload: large }));
      await peer.until("the next connection", () => (peer.sockets.opened > opened ? true : null));
      await peer.untilConnected();
    },
    say: (text) => peer.say(text),
    async [Symbol.asyncDispose]() {
      await held[Symbol.asyncDispose]();
      await peer.close();
    },
  };
}

async function discordSocket(): Promise<Connection> {
  const opened = await connectedDiscord();
  const { peer, host } = opened;
  return {
    host,
    // Not an event of the session, so that it is not repeated after the RESUME.
    overflow: () => peer.gateway.sendRaw(" ".repeat(33 * 1024 * 1024)),
    say: (text) => peer.say(text),
    [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
  };
}

async function signalStream(): Promise<Connection> {
  const peer = await startSignalPeer();
  const settings = signalChannel.settings.parse({ number: peer.number, daemon_url: peer.url });
  const host = new TestHost();
  const held = keepConnected(host, createSignal("main", settings));
  await peer.until("a reader", () => (peer.readers === 1 ? true : null));
  return {
    host,
    overflow: async () => {
      peer.writeToStreams(`event:receive\ndata:${large}${large}`);
      await peer.until("the end of the connection", () => (peer.readers === 0 ? true : null));
    },
    say: (text) => peer.say(text),
    async [Symbol.asyncDispose]() {
      await held[Symbol.asyncDispose]();
      await peer.close();
    },
  };
}

async function ircConnection(): Promise<Connection> {
  let say: (...lines: string[]) => void = () => undefined;
  const server = await startScriptedIrc(async (client) => {
    await letIn(client, "");
    say = (...said) => client.say(...said);
  });
  const place = { host: "127.0.0.1", port: server.port, tls: false };
  const settings = ircChannel.settings.parse({ ...place, nick: "parley" });
  const host = new TestHost();
  const held = keepConnected(host, createIrc("main", settings, {}));
  await host.untilLogged(/"connected"/);
  return {
    host,
    overflow: () => say(`:eve!e@h PRIVMSG parley :${large}`),
    say: (text) => say(`:ann!a@h PRIVMSG parley :${text}`),
    async [Symbol.asyncDispose]() {
      await held[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

describe("a connection to a platform", { concurrency: true }, () => {
  const connections = { slack: slackSocket, discord: discordSocket, signal: signalStream, irc: ircConnection };
  for (const [channel, open] of Object.entries(connections)) {
    test(`receives further messages after one that is too large (${channel})`, async () => {
      await using connection = await open();
      await connection.say("before");
      await connection.host.untilAccepted(1);
      await connection.overflow();
      await connection.say("after");
      await connection.host.untilAccepted(2);
      assert.deepEqual(connection.host.texts, ["before", "after"]);
    });
  }
});
