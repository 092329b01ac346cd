// Hints about new utterances on the bus: from real stdio and HTTP servers, legacy and modern, by notification or resource
// update, and throttled under a flood.
import assert from "node:assert/strict";
import { appendFile, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { after, before, test } from "node:test";
import { toolCatalog, toolsChanged, voiceCall, voiceNews, type VoiceNews } from "@parley/contracts";
import { Cleanup, temporaryFolder } from "@parley/testing";
import { openRunnerFixture, type RunnerFixture } from "../support/runner-fixture.ts";
import { startListeningOverHttp, type ListeningOverHttp } from "./servers/listening-http.ts";
import type { Announcement } from "./servers/listening-server.ts";

const cleanup = new Cleanup();
let stage: RunnerFixture;
let heardFile: string;
let journal: string;
const overHttp = new Map<string, ListeningOverHttp>();
const news: VoiceNews[] = [];
let moved = Promise.withResolvers<undefined>();

const program = fileURLToPath(new URL("servers/listening.ts", import.meta.url));
const kinds = {
  "a program of the new kind by its own notification": ["stdio", "auto", "notify"],
  "a program of the new kind by a resource": ["stdio", "auto", "resource"],
  "a program of the old kind by its own notification": ["stdio", "legacy", "notify"],
  "a program of the old kind by a resource": ["stdio", "legacy", "resource"],
  "a server of the new kind over HTTP by a resource": ["http", "2026", "resource"],
  "a server of the old kind over HTTP by its own notification": ["http", "legacy", "notify"],
  "a server of the old kind over HTTP by a resource": ["http", "legacy", "resource"],
} as const;
const nameOf = (reach: string, era: string, by: string) => `${reach}-${era}-${by}`;

before(async () => {
  stage = await openRunnerFixture(cleanup);
  const folder = await temporaryFolder(cleanup);
  [heardFile, journal] = [join(folder, "heard"), join(folder, "journal")];
  await Promise.all([writeFile(heardFile, ""), writeFile(journal, "")]);
  const tables = ['[voice]\nnotify = "notifications/stt/updated"'];
  for (const [reach, era, by] of Object.values(kinds)) {
    const name = nameOf(reach, era, by);
    if (reach === "stdio") {
      const args = JSON.stringify([program, heardFile, journal, by]);
      tables.push(`[mcp.servers.${name}]\ncommand = "${process.execPath}"\nargs = ${args}\nera = "${era}"`);
    } else {
      const announcement: Announcement = by;
      const server = await startListeningOverHttp({ heardFile, journal, announcement, era });
      cleanup.add(() => server.stop());
      overHttp.set(name, server);
      tables.push(`[mcp.servers.${name}]\nurl = "${server.url}"\nera = "${era}"`);
    }
  }
  const settings = join(folder, "parley.toml");
  await writeFile(settings, tables.join("\n\n"));
  stage.core.subscribe(voiceNews, {}, (heard) => {
    news.push(heard);
    moved.resolve(undefined);
  });
  stage.core.subscribe(toolsChanged, {}, () => moved.resolve(undefined));
  await stage.core.flush();
  await stage.runner("tool-runner-1", {}, { PARLEY_CONFIG: settings });
  await until(async () => (await stage.core.request(toolCatalog, {})).mcp?.every(({ state }) => state === "ready"));
});
after(() => cleanup[Symbol.asyncDispose]());

/** Resolves when the condition holds; checked on each bus message. */
async function until(done: () => boolean | undefined | Promise<boolean | undefined>): Promise<void> {
  const ticking = setInterval(() => moved.resolve(undefined), 50);
  try {
    for (const deadline = Date.now() + 20_000; (await done()) !== true; moved = Promise.withResolvers()) {
      if (Date.now() > deadline)
        throw new Error(`condition not met in time: ${done.toString()}; ${JSON.stringify(news)}`);
      await moved.promise;
    }
  } finally {
    clearInterval(ticking);
  }
}

async function call(server: string, tool: "start" | "updates" | "stop", args: Record<string, unknown>) {
  const order = { epoch: stage.epoch, server, tool, arguments: args, timeoutMs: 5_000 };
  const answer = await stage.core.request(voiceCall, order, { params: { replica: "tool-runner-1" } });
  assert.equal(answer.outcome, "answered", JSON.stringify(answer));
  return answer.outcome === "answered" ? answer.value : {};
}
const hear = (text: string, quiet = false) =>
  appendFile(heardFile, `${JSON.stringify({ type: "utterance_final", text, quiet })}\n`);
/** Hints about a server since `since`. */
const of = (server: string, since = 0) => news.slice(since).filter((each) => each.server === server);

test("publishes a hint on connect, because earlier utterances may be unannounced", async () => {
  for (const [reach, era, by] of Object.values(kinds)) {
    const server = nameOf(reach, era, by);
    await until(() => of(server).length > 0);
    assert.deepEqual(of(server), [{ runner: "tool-runner-1", server, sttSessionId: null }]);
  }
});

for (const [kind, [reach, era, by]] of Object.entries(kinds)) {
  test(`publishes a hint for an utterance announced by ${kind}`, async () => {
    const server = nameOf(reach, era, by);
    const { session_id: session } = await call(server, "start", { source: "microphone" });
    // A new subscription publishes a hint at once: earlier utterances were not announced.
    if (by === "resource") await until(() => of(server).some(({ sttSessionId }) => sttSessionId === session));
    const since = news.length;
    await hear(`for ${server}`);
    await until(() => of(server, since).length > 0);
    assert.deepEqual(of(server, since)[0], { runner: "tool-runner-1", server, sttSessionId: session });
    const updates = { session_id: session, since_seq: 0, limit: 10 };
    assert.deepEqual((await call(server, "updates", updates))["events"], [
      { seq: 1, type: "utterance_final", text: `for ${server}` },
    ]);
    await call(server, "stop", { session_id: session });
  });
}

test("ends a subscription with its session", async () => {
  const took = async (what: string) =>
    (await readFile(journal, "utf8")).split("\n").filter((line) => line.includes(`"${what}"`));
  await until(async () => (await took("unsubscribe")).length === 2);
  assert.equal((await took("subscribe")).length, 2);
});

test("renews a subscription dropped by an HTTP server on the next poll", async () => {
  const server = nameOf("http", "2026", "resource");
  const { session_id: session } = await call(server, "start", { source: "microphone" });
  await until(() => of(server).some(({ sttSessionId }) => sttSessionId === session));
  const since = news.length;
  overHttp.get(server)?.endStreams();
  await until(async () => {
    await call(server, "updates", { session_id: session, since_seq: 0, limit: 10 });
    return of(server, since).length > 0;
  });
  const announced = news.length;
  await hear("after the drop");
  await until(() => of(server, announced).some(({ sttSessionId }) => sttSessionId === session));
  await call(server, "stop", { session_id: session });
});

test("throttles a flood to 20 hints per second without losing the last one", async () => {
  const server = nameOf("stdio", "legacy", "notify");
  const { session_id: session } = await call(server, "start", { source: "microphone" });
  const since = news.length;
  const beganAt = performance.now();
  const line = `${JSON.stringify({ type: "utterance_partial", text: "a" })}\n`;
  for (let chunk = 0; chunk < 20; chunk++) {
    await appendFile(heardFile, line.repeat(100));
    const { events } = await call(server, "updates", { session_id: session, since_seq: chunk * 100, limit: 100 });
    assert.equal(Array.isArray(events) && events.length, 100);
  }
  await until(() => of(server, since).length > 0);
  const seconds = (performance.now() - beganAt) / 1_000;
  assert.ok(of(server, since).length <= 1 + 20 * seconds, `${of(server, since).length} hints in ${seconds} s`);
  const { length } = of(server, since);
  await hear("at last");
  await until(() => of(server, since).length > length);
  await call(server, "stop", { session_id: session });
});
