// Each page of docs/channels followed by somebody new: `channels add` with the answers that the page names, a first message, the pairing
// code, a second message and its answer, against the platform's fake or a real server.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, test } from "node:test";

import {
  Cleanup,
  missingSynapse,
  pollUntil,
  startDiscordPeer,
  startIi,
  startInspIrcd,
  startMailPeer,
  startSignalPeer,
  startSlackPeer,
  startSynapse,
  startTelegramPeer,
  startTestCluster,
  startWhatsAppPeer,
  temporaryFolder,
  type TestCluster,
} from "@parley/testing";

import { parleyOnTerminal, runParley } from "./support/parley.ts";

/** A person and an account of their platform, set up as far as its page says before `channels add`. */
interface SetUp {
  /** Settings for the fake instead of the real platform, which has none of them. */
  settings: Record<string, string | number | boolean>;
  /** What the command asks, in order, and what the page says to enter. */
  answers: readonly (readonly [question: RegExp, answer: string])[];
  /** Secrets, which must not be shown. */
  secrets?: readonly string[];
  /** A wrong answer to the last question, and what the command says about it; omitted: the platform is not asked. */
  refused?: readonly [answer: string, problem: RegExp];
  /** What the platform calls the account; omitted: it does not say. */
  as?: RegExp;
  /** The steps of the page after the account was added, for example to register its address. */
  finish?: (httpUrl: string) => Promise<unknown>;
  /** The first message makes nobody the owner, because the command has asked for the owner. */
  ownerAsked?: true;
  say: (text: string) => unknown;
  /** Everything that the agent has sent to the person. */
  received: () => string[] | Promise<string[]>;
}

const cleanup = new Cleanup();
let home: string;
let cluster: TestCluster;

before(async () => {
  home = await temporaryFolder(cleanup);
  cluster = await startTestCluster(cleanup, { home, processes: [] });
});
after(() => cleanup[Symbol.asyncDispose]());

const setUps: Record<string, (stack: AsyncDisposableStack) => Promise<SetUp>> = {
  telegram: async (stack) => {
    const peer = stack.use(await startTelegramPeer());
    return {
      settings: { api_root: peer.url },
      answers: [[/token from @BotFather \(token_env, not shown\): /, peer.token]],
      secrets: [peer.token],
      refused: ["7000002:AAWrongTokenOfNobodyForTestsOnly", /token refused by Telegram \(Unauthorized\)/],
      as: /@?parley_bot/i,
      say: (text) => peer.say(text),
      received: () => peer.sent.map(({ text }) => text),
    };
  },
  irc: async (stack) => {
    const server = await startInspIrcd();
    stack.defer(() => server.stop());
    const ann = await startIi({ port: server.port, nick: "ann" });
    stack.defer(() => ann.quit());
    return {
      settings: { port: server.port, tls: false },
      answers: [
        [/The server, for example irc\.libera\.chat \(host\): /, "127.0.0.1"],
        [/The agent's nick \(nick\): /, "parley"],
      ],
      say: (text) => ann.say("parley", text),
      received: () => ann.lines("parley").flatMap(({ nick, text }) => (nick === "parley" ? [text] : [])),
    };
  },
  email: async (stack) => {
    const peer = stack.use(await startMailPeer());
    return {
      settings: {
        smtp_port: peer.smtpPort,
        smtp_tls: "none",
        imap_port: peer.imapPort,
        imap_tls: "none",
        username: "agent",
      },
      answers: [
        [/own e-mail address \(address\): /, `agent@${peer.domain}`],
        [/\(consent\): /, "yes"],
        [/\(authserv_id\): /, peer.authservId],
        [/\(smtp_host\): /, peer.host],
        [/\(imap_host\): /, peer.host],
        [/\(password_env, not shown\): /, peer.password],
      ],
      secrets: [peer.password],
      refused: ["another-password", /refused the username or password/],
      say: (body) => peer.write({ body }),
      received: () => peer.mails("ann"),
    };
  },
  whatsapp: async (stack) => {
    const peer = await startWhatsAppPeer();
    stack.defer(() => peer.close());
    const verifyToken = "0123456789abcdef0123456789abcdef";
    return {
      settings: { api_root: peer.url },
      answers: [
        [/\(phone_number_id\): /, peer.phoneNumberId],
        [/\(token_env, not shown\): /, peer.token],
        [/\(app_secret_env, not shown\): /, peer.appSecret],
        [/\(verify_token_env, not shown\): /, verifyToken],
      ],
      secrets: [peer.token, peer.appSecret, verifyToken],
      as: /15550783881/,
      finish: (httpUrl) => peer.subscribe(`${httpUrl}/channels/whatsapp/main/webhook`, verifyToken),
      say: (text) => peer.say(text),
      received: () => peer.sent.map(({ text }) => text ?? ""),
    };
  },
  slack: async (stack) => {
    const peer = await startSlackPeer({ postRate: { burst: 1_000, everyMs: 1 } });
    stack.defer(() => peer.close());
    return {
      settings: { api_root: peer.url },
      answers: [
        [/begins with xoxb-\) \(token_env, not shown\): /, peer.tokens.bot],
        [/begins with xapp-\) \(app_token_env, not shown\): /, peer.tokens.app],
      ],
      secrets: [peer.tokens.bot, peer.tokens.app],
      refused: ["xapp-1-a-token-of-nobody", /token refused by Slack \(app_token_env: the token is wrong/],
      as: /@parley/,
      say: (text) => peer.say(text),
      received: () => peer.sent.map(({ text }) => text),
    };
  },
  discord: async (stack) => {
    const peer = await startDiscordPeer();
    stack.defer(() => peer.close());
    return {
      settings: { api_root: peer.url },
      answers: [[/token from the Developer Portal \(token_env, not shown\): /, peer.token]],
      secrets: [peer.token],
      refused: ["another.token.x", /token refused by Discord/],
      as: /parley/,
      say: (text) => peer.say(text),
      received: () => peer.sent.map(({ content }) => content),
    };
  },
  matrix: async (stack) => {
    const synapse = stack.use(await startSynapse());
    const [agent, ann] = [await synapse.person("parley"), await synapse.person("ann")];
    let room = "";
    return {
      settings: {},
      answers: [
        [/your own Matrix id.*\(owners\): /i, ann.userId],
        [/client API.*\(homeserver\): /, synapse.url],
        [/access token.*\(token_env, not shown\): /, agent.token],
      ],
      secrets: [agent.token],
      refused: ["syt_a-token-of-nobody", /token refused by the homeserver/],
      as: /@parley:/,
      ownerAsked: true,
      finish: async () => {
        room = await ann.createRoom({ invite: [agent.userId] });
        await ann.untilJoined(room, agent.userId);
      },
      say: (text) => ann.say(room, text),
      received: async () => (await ann.messagesOf(room, agent.userId)).map(({ content }) => String(content["body"])),
    };
  },
  signal: async (stack) => {
    const peer = stack.use(await startSignalPeer());
    return {
      settings: { daemon_url: peer.url },
      answers: [[/phone number in international format.*\(number\): /, peer.number]],
      refused: ["+15550109999", /the daemon has no account \+15550109999/],
      say: (text) => peer.say(text),
      received: () => peer.sent.map(({ text }) => text),
    };
  },
};

/** Answers the questions of `channels add`; resolves after the last answer. */
async function answer(
  { settings, answers }: Pick<SetUp, "settings" | "answers">,
  channel: string,
  { last = answers.at(-1)?.[1] ?? "", env = {} }: { last?: string; env?: Record<string, string> } = {},
) {
  const given = Object.entries(settings).flatMap(([name, value]) => ["--setting", `${name}=${value}`]);
  const run = parleyOnTerminal(home, ["channels", "add", channel, ...given], env);
  for (const [index, [question, text]] of answers.entries()) {
    await run.says(question);
    run.write(`${index === answers.length - 1 ? last : text}\r`);
  }
  return run;
}

describe("an account added as its page says", () => {
  for (const [channel, open] of Object.entries(setUps)) {
    const skip = channel === "matrix" && missingSynapse;
    test(`has its owner and answers them (${channel})`, async (context) => {
      const missing = skip === false ? false : await skip();
      if (missing !== false) return context.skip(missing);
      await using stack = new AsyncDisposableStack();
      const setUp = await open(stack);
      if (setUp.refused !== undefined) {
        const [wrong, problem] = setUp.refused;
        const refusedRun = await answer(setUp, channel, { last: wrong });
        const enteredMs = performance.now();
        await refusedRun.says(problem);
        const saidMs = performance.now() - enteredMs;
        context.diagnostic(`the wrong answer was reported after ${Math.round(saidMs)} ms`);
        const { code, stdout } = await refusedRun.outcome();
        assert.equal(code, 1, stdout);
        assert.match(stdout, problem);
        assert.match(stdout, new RegExp(`Nothing was added\\. docs/channels/${channel}\\.md explains it`));
      }
      const beganMs = performance.now();
      const run = await answer(setUp, channel);
      await run.says(
        new RegExp(`${channel}:main is added${setUp.as === undefined ? "" : `: .*${setUp.as.source}`}`, "i"),
      );
      if (setUp.ownerAsked === undefined) await run.says(/Now write to it/);
      await setUp.finish?.(cluster.httpUrls[0] ?? "");
      if (setUp.ownerAsked === undefined) {
        await setUp.say("hello");
        await run.says(/wrote to it and received a code/);
        const code = await pollUntil(
          async () => /[A-Z2-9]{4}-[A-Z2-9]{4}/.exec((await setUp.received()).join("\n"))?.[0],
        );
        await run.says(/enter the code/);
        run.write(`${code}\r`);
        await run.says(/is the owner/);
      }
      const { code, stdout } = await run.outcome();
      assert.equal(code, 0, stdout);
      for (const secret of setUp.secrets ?? []) assert.ok(!stdout.includes(secret), "a secret is shown");
      await setUp.say(`say: it works on ${channel}`);
      await pollUntil(async () => (await setUp.received()).some((text) => text.includes(`it works on ${channel}`)));
      context.diagnostic(`one command; answered on the channel after ${Math.round(performance.now() - beganMs)} ms`);
      const listed = await runParley(home, ["channels", "list"]);
      assert.match(listed.stdout, new RegExp(`${channel}:main +(?:connected|listening)`));
      const tested = await runParley(home, ["channels", "test", `${channel}:main`]);
      assert.equal(tested.code, 0, tested.stdout + tested.stderr);
      const removed = await runParley(home, ["channels", "remove", `${channel}:main`]);
      assert.equal(removed.code, 0, removed.stderr);
    });
  }
});

test("keeps the stored secret of an account when nothing is entered", async () => {
  await using stack = new AsyncDisposableStack();
  const setUp = await setUps["telegram"]?.(stack);
  assert.ok(setUp);
  const [secret = ""] = setUp.secrets ?? [];
  const given = ["--setting", `api_root=${String(setUp.settings["api_root"])}`, "--setting", "owners=42"];
  const words = ["channels", "add", "telegram:kept", ...given];
  const missing = await runParley(home, words, { input: "\n" });
  assert.match(missing.stderr, /token_env is missing/);
  assert.equal((await runParley(home, words, { input: `${secret}\n` })).code, 0);
  const run = parleyOnTerminal(home, [...words, "--setting", "groups=-5"]);
  await run.says(/\(token_env, not shown; empty: unchanged\): /);
  run.write("\r");
  await run.says(/telegram:kept is changed: @parley_bot/);
  assert.equal((await run.outcome()).code, 0);
  assert.equal((await runParley(home, ["channels", "remove", "telegram:kept"])).code, 0);
});

test("waits for the first message also while no gateway answers", async () => {
  await using stack = new AsyncDisposableStack();
  const setUp = await setUps["telegram"]?.(stack);
  assert.ok(setUp);
  let failing: "none" | "cut" | "unready" = "none";
  const failed = Promise.withResolvers<void>();
  const proxy = createServer((request, response) => {
    if (failing === "cut") {
      failing = "unready";
      request.socket.destroy();
    } else if (failing === "unready") {
      failing = "none";
      response.writeHead(503, { "content-type": "application/json" }).end("{}");
      failed.resolve();
    } else void forward(request, response);
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  stack.defer(() => void proxy.close());
  const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  const run = await answer(setUp, "telegram:away", { env: { PARLEY_URL: url, PARLEY_TOKEN: cluster.token } });
  await run.says(/Now write to it/);
  failing = "cut";
  await failed.promise;
  await setUp.say("hello");
  await run.says(/wrote to it and received a code/);
  run.write("\r");
  assert.equal((await run.outcome()).code, 0);
  assert.equal((await runParley(home, ["channels", "remove", "telegram:away"])).code, 0);
});

/** Passes a request on to the gateway. */
async function forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const { host: _, connection: __, "content-length": ___, ...headers } = request.headers as Record<string, string>;
  const method = request.method ?? "GET";
  const body = method === "GET" ? null : Buffer.concat(chunks);
  const answered = await fetch(`${cluster.httpUrls[0]}${request.url}`, { method, headers, body });
  response.writeHead(answered.status, { "content-type": "application/json" }).end(await answered.text());
}
