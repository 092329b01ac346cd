// Elicitation during a call, over both transports, with real servers, a real store and answers in the conversation;
// also progress and pictures of a call.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import type { Bus } from "@parley/bus";
import {
  callToken,
  sessionEvent,
  store,
  toolAlive,
  toolCancel,
  toolCatalog,
  toolProgress,
  toolsChanged,
  type InboundMessage,
  type ToolCallRequest,
  type ToolProgress,
} from "@parley/contracts";
import { Cleanup, temporaryFolder } from "@parley/testing";
import { openRunnerFixture, type RunnerFixture } from "../support/runner-fixture.ts";
import { everything, startEverything } from "./programs.ts";

const cleanup = new Cleanup();
let fixture: RunnerFixture;
let gateway: Bus;

before(async () => {
  fixture = await openRunnerFixture(cleanup);
  gateway = await fixture.stack.bus("channel-gateway");
  const settings = join(await temporaryFolder(cleanup), "parley.toml");
  const own = (name: string) => fileURLToPath(new URL(`servers/${name}.ts`, import.meta.url));
  const args = (...more: string[]) => JSON.stringify(["--conditions=@parley/source", ...more]);
  await writeFile(
    settings,
    `[mcp.servers.local]
command = "${process.execPath}"
args = ["${everything}", "stdio"]

[mcp.servers.remote]
url = "${await startEverything(cleanup)}"

[mcp.servers.modern]
command = "${process.execPath}"
args = ${args(own("modern"))}
era = "2026"

[mcp.servers.naughty]
command = "${process.execPath}"
args = ${args(own("naughty"))}

[mcp.servers.silent]
command = "${process.execPath}"
args = ["${everything}", "stdio"]
question_seconds = 0
`,
  );
  await fixture.runner("tool-runner-1", {}, { PARLEY_CONFIG: settings });
  await ready(5);
});
after(() => cleanup[Symbol.asyncDispose]());

async function ready(count: number): Promise<void> {
  let moved = Promise.withResolvers<undefined>();
  const heard = fixture.core.subscribe(toolsChanged, {}, () => moved.resolve(undefined));
  const ticking = setInterval(() => moved.resolve(undefined), 100);
  try {
    for (;;) {
      moved = Promise.withResolvers();
      const { mcp = [] } = await fixture.core.request(toolCatalog, {});
      if (mcp.filter(({ state }) => state === "ready").length === count) return;
      await moved.promise;
    }
  } finally {
    clearInterval(ticking);
    heard.close();
  }
}

interface Conversation {
  request: ToolCallRequest;
  key: string;
  /** Resolves with the next question of this conversation, in order. */
  asked(): Promise<string>;
  say(text: string): Promise<string>;
}

/** A conversation in which a call was made. */
async function conversation(tool: string, input: unknown = {}, timeoutMs = 20_000): Promise<Conversation> {
  const key = randomUUID();
  const [request] = await fixture.plan([{ tool, class: "once", input, timeoutMs }], { sessionKey: key });
  assert.ok(request !== undefined);
  const questions: string[] = [];
  let more = Promise.withResolvers<undefined>();
  const heard = gateway.subscribe(sessionEvent, { session: request.sessionId }, (event) => {
    if (event.type !== "question.asked") return;
    questions.push(event.question);
    more.resolve(undefined);
  });
  cleanup.add(async () => heard.close());
  await gateway.flush();
  return {
    request,
    key,
    asked: async () => {
      for (;;) {
        const next = questions.shift();
        if (next !== undefined) return next;
        more = Promise.withResolvers();
        await more.promise;
      }
    },
    say: async (text) => {
      const { inboxId } = await gateway.request(store.inboxPut, { message: spoken(text), sessionKey: key });
      return (await gateway.request(store.inboxGet, { inboxId })).state;
    },
  };
}

function spoken(text: string): InboundMessage {
  return {
    channel: "irc",
    account: "main",
    externalId: randomUUID(),
    conversation: "#test",
    contact: { id: "7" },
    role: "owner",
    origin: "user",
    parts: [{ type: "text", text }],
    replyTo: { channel: "irc", account: "main", conversation: "#test" },
  };
}

const elicitation = "trigger-elicitation-request";

describe("a question of a server", () => {
  for (const server of ["local", "remote"]) {
    test(`is asked field by field, and the call continues with the answers (${server})`, async () => {
      const talk = await conversation(`mcp__${server}__${elicitation}`);
      const called = fixture.call(talk.request, 30_000);
      assert.match(await talk.asked(), new RegExp(`The MCP server "${server}".*\n.*\n\n1 of 13: String – Your full`));
      assert.equal(await talk.say("Ada Lovelace"), "claimed");
      assert.match(await talk.asked(), /^2 of 13: Boolean – Agree to the terms and conditions\nAnswer yes or no\./);
      await talk.say("perhaps");
      assert.match(await talk.asked(), /^Please answer yes or no/);
      await talk.say("yes");
      assert.match(await talk.asked(), /^3 of 13: /);
      await talk.say("done");
      const { state, result } = await called;
      assert.equal(state, "done");
      assert.match(result.content, /- Name: Ada Lovelace\n- Agreed to terms: true\n- Favorite Integer: 42/);
      assert.match(
        result.content,
        /\[The server asked the user: .* the user answered name: "Ada Lovelace", check: true/,
      );
    });
  }

  test("of a server of 2026 is asked between two rounds of the call", async () => {
    const talk = await conversation("mcp__modern__greet");
    const called = fixture.call(talk.request, 30_000);
    assert.match(await talk.asked(), /Whom should I greet\?/);
    await talk.say("the world");
    assert.match((await called).result.content, /hello, the world/);
  });

  test("that is a link is shown with its host, and its acceptance reaches the server", async () => {
    const talk = await conversation("mcp__remote__trigger-url-elicitation", { url: "https://pay.example/invoice/7" });
    const called = fixture.call(talk.request, 30_000);
    assert.match(await talk.asked(), /open this page of pay\.example:\nhttps:\/\/pay\.example\/invoice\/7/);
    await talk.say("yes");
    const { content } = (await called).result;
    assert.match(content, /"action": "accept"/);
    assert.match(content, /the user opened a page of pay\.example for remote/);
  });

  test("that is an error with a required link gives the model the link", async () => {
    const input = { url: "https://pay.example/invoice/8", errorPath: true };
    const { state, result } = await fixture.call(
      (await conversation("mcp__local__trigger-url-elicitation", input)).request,
    );
    assert.equal(state, "failed");
    assert.match(result.content, /did nothing yet\. Ask the user to open this link, then try again: https:\/\//);
  });

  test("is asked in the conversation of its own call when several calls run concurrently", async () => {
    const talks = await Promise.all(["Ada", "Grace", "Mary"].map(() => conversation(`mcp__remote__${elicitation}`)));
    const called = talks.map(({ request }) => fixture.call(request, 30_000));
    const names = ["Ada", "Grace", "Mary"];
    for (const [index, talk] of talks.entries()) {
      await talk.asked();
      await talk.say(names[index] ?? "");
      await talk.asked();
      await talk.say("done");
    }
    const contents = (await Promise.all(called)).map(({ result }) => result.content);
    for (const [index, name] of names.entries()) assert.match(contents[index] ?? "", new RegExp(`- Name: ${name}\n`));
  });

  test("is declined when two calls of a program run, and both results report it", async () => {
    const talks = [await conversation(`mcp__local__${elicitation}`), await conversation(`mcp__local__${elicitation}`)];
    const [first, second] = talks;
    assert.ok(first !== undefined && second !== undefined);
    const called = fixture.call(first.request, 30_000);
    await first.asked();
    const { content } = (await fixture.call(second.request, 30_000)).result;
    assert.match(content, /User declined.*the question cannot be assigned to one of them/s);
    await first.say("decline");
    assert.match((await called).result.content, /User declined/);
  });

  test("is withdrawn when the call is cancelled, and the next message is an ordinary one", async () => {
    const talk = await conversation(`mcp__local__${elicitation}`);
    const called = fixture.call(talk.request, 30_000);
    await talk.asked();
    const { epoch, turnId, n } = talk.request;
    fixture.core.publish(toolCancel, { epoch, turnId, n }, { call: callToken(turnId, n) });
    assert.equal((await called).state, "cancelled");
    assert.equal(await talk.say("hello?"), "queued");
  });

  test("is marked in the call's liveness messages while it waits for the person", async () => {
    const talk = await conversation(`mcp__modern__greet`);
    const { turnId, n } = talk.request;
    const seen: boolean[] = [];
    const over = Promise.withResolvers<undefined>();
    const heard = fixture.core.subscribe(toolAlive, { call: callToken(turnId, n) }, ({ asks = false }) => {
      if (seen.at(-1) !== asks) seen.push(asks);
      if (seen.length === 3) over.resolve(undefined);
    });
    await fixture.core.flush();
    const called = fixture.call(talk.request, 30_000);
    await talk.asked();
    await talk.say("you");
    await Promise.all([called, over.promise]);
    heard.close();
    assert.deepEqual(seen, [false, true, false]);
  });

  test("does not count towards the time limit of the call", async () => {
    // The server responds within milliseconds; the rest of the time is the person's.
    const talk = await conversation(`mcp__modern__greet`, {}, 2_500);
    const { turnId, n } = talk.request;
    const later = Promise.withResolvers<undefined>();
    let signs = 0;
    // The first liveness message comes immediately, the second with the question, the others each a second later.
    const heard = fixture.core.subscribe(toolAlive, { call: callToken(turnId, n) }, () => {
      signs += 1;
      if (signs === 5) later.resolve(undefined);
    });
    await fixture.core.flush();
    const called = fixture.call(talk.request, 30_000);
    await Promise.all([talk.asked(), later.promise]);
    heard.close();
    await talk.say("you");
    assert.equal((await called).state, "done");
  });

  test("is declined immediately when the settings do not allow elicitation", async () => {
    const talk = await conversation(`mcp__silent__${elicitation}`);
    assert.match((await fixture.call(talk.request)).result.content, /User declined.*the server may not ask questions/s);
  });
});

describe("a call", () => {
  test("reports its progress while it runs", async () => {
    const talk = await conversation("mcp__local__trigger-long-running-operation", { duration: 0.2, steps: 2 });
    const { turnId, n } = talk.request;
    const first = Promise.withResolvers<ToolProgress>();
    const heard = fixture.core.subscribe(toolProgress, { call: callToken(turnId, n) }, (event) =>
      first.resolve(event.progress),
    );
    await fixture.core.flush();
    assert.match((await fixture.call(talk.request)).result.content, /Long running operation completed/);
    assert.deepEqual(await first.promise, { done: 1, total: 2, message: "" });
    heard.close();
  });

  test("that returns a picture has it as an attachment in the store", async () => {
    const talk = await conversation("mcp__local__get-tiny-image");
    const { result } = await fixture.call(talk.request);
    const [image] = result.attachments ?? [];
    assert.equal(image?.mediaType, "image/png");
    assert.match(
      result.content,
      new RegExp(`\\[image: image/png, \\S+ \\S+; attached as "image.png", id ${image?.sha256}\\]`),
    );
    const { blobs } = await fixture.core.request(store.blobHead, { sha256: [image?.sha256 ?? ""] });
    assert.equal(blobs.length, 1);
  });
});
