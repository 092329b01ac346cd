// Voice with a server that announces new utterances, on real processes: the announcement triggers a poll and nothing else, so that
// each utterance is one turn, also when announcements are lost or processes die.
import assert from "node:assert/strict";
import { appendFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { after, before, describe, test } from "node:test";
import {
  Cleanup,
  startTelegramPeer,
  startTestCluster,
  temporaryFolder,
  type TelegramPeer,
  type TestCluster,
} from "@parley/testing";
import { startListeningOverHttp } from "../../services/tool-runner/test/mcp/servers/listening-http.ts";

interface ClusterFixture {
  cluster: TestCluster;
  peer: TelegramPeer;
  /** Adds an utterance; with `quiet` the server does not announce it. */
  hear(text: string, quiet?: boolean): Promise<void>;
  /** Resolves with the texts of the chat once one of them matches. */
  until(pattern: RegExp, after?: number): Promise<string[]>;
  texts(): string[];
  say(text: string): void;
}

const chat = 42;
/** Less than one poll interval. */
const soonMs = 30_000;

async function startVoiceFixture(cleanup: Cleanup, voice: string, over: "stdio" | "http"): Promise<ClusterFixture> {
  const folder = await temporaryFolder(cleanup);
  const [heardFile, journal] = [join(folder, "heard"), join(folder, "journal")];
  await Promise.all([writeFile(heardFile, ""), writeFile(journal, "")]);
  const peer = await startTelegramPeer();
  cleanup.add(() => peer.close());
  const program = fileURLToPath(new URL("../../services/tool-runner/test/mcp/servers/listening.ts", import.meta.url));
  let server = `command = "${process.execPath}"\nargs = ["${program}", "${heardFile}", "${journal}", "notify"]`;
  if (over === "http") {
    const http = await startListeningOverHttp({ heardFile, journal, announcement: "resource", era: "2026" });
    cleanup.add(() => http.stop());
    server = `url = "${http.url}"`;
  }
  const settings = `
[channels.telegram.main]
token_env = "PARLEY_CHANNEL_TELEGRAM"
api_root = "${peer.url}"
owners = ["${chat}"]

[mcp.servers.speech]
${server}

[voice]
${voice}
`;
  const env = { "channel-gateway": { PARLEY_CHANNEL_TELEGRAM: peer.token } };
  const cluster = await startTestCluster(cleanup, { model: true, settings, env });
  const texts = () => peer.sent.filter(({ chatId }) => chatId === chat).map(({ text }) => text);
  return {
    cluster,
    peer,
    hear: (text, quiet = false) =>
      appendFile(heardFile, `${JSON.stringify({ type: "utterance_final", text: `say: ${text}`, quiet })}\n`),
    until: (pattern, since = 0) =>
      peer.until(
        `${String(pattern)}, of ${JSON.stringify(texts().slice(since))}`,
        () =>
          texts()
            .slice(since)
            .some((text) => pattern.test(text))
            ? texts().slice(since)
            : null,
        soonMs,
      ),
    texts,
    say: (text) => peer.say(text, { from: chat }),
  };
}

async function status(fixture: ClusterFixture): Promise<string> {
  const before = fixture.texts().length;
  fixture.say("/voice status");
  return (await fixture.until(/^Voice is listening/, before)).join("\n");
}

describe("with a poll interval of one minute", () => {
  const cleanup = new Cleanup();
  let fixture: ClusterFixture;

  before(async () => {
    fixture = await startVoiceFixture(cleanup, "poll_ms = 60000\npush_poll_ms = 60000", "http");
    fixture.say("/voice start");
    await fixture.until(/^Listening to /);
  });
  after(async () => {
    await cleanup[Symbol.asyncDispose]();
    assert.deepEqual(fixture.cluster.strict?.refusals, []);
  });

  // design: 002.25
  test("starts a turn at once when the server announces an utterance, and reports so in the status", async () => {
    await fixture.hear("one");
    await fixture.until(/^one$/);
    await fixture.hear("two");
    await fixture.until(/^two$/);
    assert.match(await status(fixture), /Updates: pushed by the server, and polled every 60 s\.$/m);
  });

  test("delivers an unannounced utterance once and in order with the next announcement", async () => {
    const since = fixture.texts().length;
    await fixture.hear("unannounced", true);
    await fixture.hear("announced");
    assert.deepEqual(await fixture.until(/^announced$/, since), ["unannounced", "announced"]);
  });

  for (const point of ["voice.before_advance", "voice.after_advance"]) {
    test(`continues, with new announcements, when a leader is killed at ${point}`, async () => {
      const since = fixture.texts().length;
      const name = point.replaceAll(/\W/g, "-");
      await fixture.cluster.fault(point, "kill");
      await fixture.hear(`${name} first`);
      await fixture.until(new RegExp(`^${name} first$`), since);
      assert.deepEqual(await fixture.cluster.armed(), []);
      await fixture.hear(`${name} second`);
      const said = await fixture.until(new RegExp(`^${name} second$`), since);
      assert.deepEqual(said, [`${name} first`, `${name} second`]);
    });
  }

  test("polls and subscribes again when a tool-runner with a subscription is killed", async () => {
    const since = fixture.texts().length;
    for (const { service, number } of fixture.cluster.replicas())
      if (service === "tool-runner") await fixture.cluster.kill(service, number, "SIGKILL");
    await fixture.hear("while nobody was there");
    await fixture.until(/^while nobody was there$/, since);
    await fixture.hear("afterwards");
    assert.deepEqual(await fixture.until(/^afterwards$/, since), ["while nobody was there", "afterwards"]);
  });
});

describe("with polling as a fallback", () => {
  const cleanup = new Cleanup();
  let fixture: ClusterFixture;

  before(async () => {
    fixture = await startVoiceFixture(
      cleanup,
      'poll_ms = 500\npush_poll_ms = 3000\nnotify = "notifications/stt/updated"',
      "stdio",
    );
    fixture.say("/voice start");
    await fixture.until(/^Listening to /);
  });
  after(() => cleanup[Symbol.asyncDispose]());

  test("finds an unannounced utterance by polling, and polls often until the next announcement", async () => {
    assert.match(await status(fixture), /Updates: polled every 0\.5 s\.$/m);
    for (let round = 1; !(await status(fixture)).includes("Updates: pushed"); round++) {
      assert.ok(round <= 10, "the clock was quicker ten times");
      await fixture.hear(`announced ${round}`);
      await fixture.until(new RegExp(`^announced ${round}$`));
    }
    const since = fixture.texts().length;
    await fixture.hear("lost", true);
    await fixture.until(/^lost$/, since);
    assert.match(await status(fixture), /Updates: polled every 0\.5 s/);
    assert.equal(fixture.texts().filter((text) => text === "lost").length, 1);
  });
});
