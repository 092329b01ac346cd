// Voice end to end, on real processes: an MCP server transcribes, utterances become turns of a chat, answers are also spoken.
// Nothing is lost or doubled when the agent dies at critical moments.
import assert from "node:assert/strict";
import { appendFile, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { after, before, test } from "node:test";
import {
  apiClient,
  Cleanup,
  startSpeechPeer,
  startTelegramPeer,
  startTestCluster,
  temporaryFolder,
  type ApiClient,
  type SpeechPeer,
  type TelegramPeer,
  type TestCluster,
} from "@parley/testing";
import { pollUntil } from "@parley/testing/until";
import { z } from "zod";

const cleanup = new Cleanup();
let cluster: TestCluster;
let client: ApiClient;
let peer: TelegramPeer;
let speech: SpeechPeer;
let heardFile: string;
let journalFile: string;

before(async () => {
  const folder = await temporaryFolder(cleanup);
  [heardFile, journalFile] = [join(folder, "heard"), join(folder, "journal")];
  await Promise.all([writeFile(heardFile, ""), writeFile(journalFile, "")]);
  peer = await startTelegramPeer();
  cleanup.add(() => peer.close());
  speech = await startSpeechPeer();
  cleanup.add(() => speech.close());
  const program = fileURLToPath(new URL("../../services/tool-runner/test/mcp/servers/listening.ts", import.meta.url));
  const settings = `
[session]
policy = "per_conversation"

[channels.telegram.main]
token_env = "PARLEY_CHANNEL_TELEGRAM"
api_root = "${peer.url}"
owners = ["42", "43", "44", "45", "46", "47", "48", "49"]
allow_from = ["900"]

[mcp.servers.speech]
command = "${process.execPath}"
args = ["${program}", "${heardFile}", "${journalFile}"]

[voice]
poll_ms = 50
poll_tries = 3

[voice.start_arguments]
endpointing_ms = 500

[voice.speech]
url = "${speech.url}"
model = "tts-1"
voice = "nova"
key_env = "PARLEY_AGENT_SPEECH"
`;
  cluster = await startTestCluster(cleanup, {
    processes: ["agent-core", "store"],
    model: true,
    settings,
    env: {
      "channel-gateway": { PARLEY_CHANNEL_TELEGRAM: peer.token },
      "agent-core": { PARLEY_AGENT_SPEECH: speech.key },
    },
  });
  client = apiClient(cluster.httpUrls, cluster.token);
  await pollUntil(async () => {
    const servers = await (await client.fetch("/api/mcp")).text();
    return /"server":"speech","state":"ready"/.test(servers);
  }, "the speech server");
});
after(async () => {
  await cleanup[Symbol.asyncDispose]();
  assert.deepEqual(cluster.strict?.refusals, [], "the real API would have refused these requests");
});

/** Adds an event to the server's list. */
const hear = (type: string, text: string) => appendFile(heardFile, `${JSON.stringify({ type, text })}\n`);
const final = (text: string) => hear("utterance_final", text);

const Entry = z.object({ call: z.string(), pid: z.number(), arguments: z.record(z.string(), z.unknown()) });
/** The requests that the server received. */
async function journal(call: string) {
  const lines = (await readFile(journalFile, "utf8")).split("\n").slice(0, -1);
  return lines.map((line) => Entry.parse(JSON.parse(line))).filter((entry) => entry.call === call);
}

const texts = (chat: number) => peer.sent.filter(({ chatId }) => chatId === chat).map(({ text }) => text);
/** Resolves with the texts of a chat once one of them matches. */
function until(chat: number, pattern: RegExp): Promise<string[]> {
  return peer.until(`${String(pattern)} in chat ${chat}, which has ${JSON.stringify(texts(chat))}`, () =>
    texts(chat).some((text) => pattern.test(text)) ? texts(chat) : null,
  );
}
const say = (chat: number, text: string) => peer.say(text, { from: chat });

/** The files that a chat received. */
const sounds = (chat: number) =>
  peer.sent.flatMap(({ chatId, file }) => (chatId === chat && file !== undefined ? [file] : []));

async function eventually(done: () => boolean | undefined | Promise<boolean | undefined>): Promise<void> {
  await pollUntil(done, done.toString()).catch((error: unknown) => {
    throw new Error(`sent: ${JSON.stringify(peer.sent.map(({ text }) => text))}`, { cause: error });
  });
}

async function start(chat: number, source = ""): Promise<void> {
  const before = texts(chat).length;
  say(chat, `/voice start ${source}`.trim());
  await eventually(() =>
    texts(chat)
      .slice(before)
      .some((text) => text.startsWith("Listening to ")),
  );
}

async function stop(chat: number): Promise<void> {
  const before = texts(chat).length;
  say(chat, "/voice stop");
  await eventually(() =>
    texts(chat)
      .slice(before)
      .some((text) => text.startsWith("Voice stopped")),
  );
}

// design: 002.25
test("starts one turn for each final utterance, in order, and answers in the chat of its start", async () => {
  await start(42);
  assert.deepEqual((await journal("start")).at(-1)?.arguments, { source: "microphone", endpointing_ms: 500 });
  await hear("utterance_partial", "say: never");
  await final("say: one");
  await hear("utterance_partial", "say: nev");
  await final("say: two");
  assert.deepEqual((await until(42, /^two$/)).slice(1), ["one", "two"]);

  say(42, "/voice events 4");
  await until(42, /utterance_final: say: two/);
  say(42, "/voice status");
  await until(
    42,
    /^Voice is listening to microphone through the MCP server speech.*2 utterances\.\nReport of the server: .*status: active/s,
  );
  say(42, "/voice start");
  await until(42, /2 utterances\. \/voice stop ends it\.$/);
  assert.equal((await journal("start")).length, 1, "it is begun once");
  say(42, "/voice stop");
  await until(42, /^Voice stopped; 2 utterances received\.$/);
  assert.equal((await journal("stop")).length, 1);
  assert.deepEqual(
    texts(42).filter((text) => text === "never"),
    [],
  );
});

test("receives a backlog of utterances that exceeds the size of a bus message", async () => {
  await start(49);
  const lines = Array.from({ length: 40 }, (_, n) => ({
    type: "utterance_partial",
    text: `${n} ${"x".repeat(20_000)}`,
  }));
  const all = [...lines, { type: "utterance_final", text: "say: at last" }];
  await appendFile(heardFile, all.map((line) => `${JSON.stringify(line)}\n`).join(""));
  await until(49, /^at last$/);
  await stop(49);
});

// design: 002.25
test("answers /voice stop while a turn runs, and the turn continues", async () => {
  await start(43);
  await final('say: I am looking.\ntool: exec {"command":"sleep 600","wait_seconds":120}\nthen\nsay: too late');
  await eventually(() => cluster.strict?.requests.some((request) => JSON.stringify(request).includes("too late")));
  say(43, "/voice stop");
  await until(43, /^Voice stopped; 1 utterance received\.$/);
  say(43, "/stop");
  await until(43, /^Stopped\./);
  assert.ok(!texts(43).includes("too late"));
});

for (const point of [
  "voice.before_advance",
  "voice.after_advance",
  "store.before_voice_advance",
  "store.after_voice_advance",
]) {
  test(`neither loses nor doubles an utterance when a process is killed at ${point}`, async () => {
    await start(44);
    const name = point.replaceAll(/\W/g, "-");
    await cluster.fault(point, "kill");
    await final(`say: ${name} first`);
    await eventually(async () => (await cluster.armed()).length === 0);
    await final(`say: ${name} second`);
    const said = await until(44, new RegExp(`^${name} second$`));
    assert.deepEqual(
      said.filter((text) => text.startsWith(name)),
      [`${name} first`, `${name} second`],
    );
    await stop(44);
  });
}

test("reports an unknown outcome and does not repeat the start when the leader dies during it", async () => {
  const before = (await journal("start")).length;
  await cluster.fault("voice.after_start", "kill");
  say(45, "/voice start");
  await until(45, /restarted while the session was starting/);
  assert.equal((await journal("start")).length, before + 1);
  await start(45);
  await stop(45);
});

test("marks the session stopped, not failed, when the leader dies during the stop", async () => {
  await start(45);
  await cluster.fault("voice.after_stop", "kill");
  const before = texts(45).length;
  say(45, "/voice stop");
  await eventually(async () => (await cluster.armed()).length === 0);
  await eventually(() => texts(45).length > before);
  await eventually(async () => {
    const asked = texts(45).length;
    say(45, "/voice status");
    await eventually(() => texts(45).length > asked);
    return texts(45).at(-1)?.startsWith("Voice is stopped; it was started");
  });
  assert.ok(
    !texts(45)
      .slice(before)
      .some((text) => text.startsWith("Voice failed")),
    "nobody is told of a failure",
  );
});

// design: 002.25
test("ends voice with a notice and keeps earlier utterances when the server dies", async () => {
  await start(46, "Headset");
  const begun = (await journal("start")).at(-1);
  assert.deepEqual(begun?.arguments, {
    source: "microphone",
    mic_device_id: "mic-2",
    mic_device_name: "Headset",
    endpointing_ms: 500,
  });
  await final("say: before the end");
  await until(46, /^before the end$/);
  process.kill(begun.pid, "SIGKILL");
  await until(46, /^Voice failed: unknown session .*Start again with \/voice start\.$/s);
  say(46, "/voice status");
  await until(46, /^Voice failed after 1 utterance: unknown session/);
});

test("sends audio after the text when enabled; a failing service delays no text", async () => {
  say(47, "/voice replies on");
  await until(47, /^Each answer of this session is followed by an audio version/);
  speech.failNext(503);
  say(47, "say: Good **evening**");
  await eventually(() => sounds(47).length === 1);
  const [file] = sounds(47);
  assert.deepEqual([file?.kind, file?.name], ["voice", "voice.ogg"]);
  assert.deepEqual(file?.content, speech.soundOf("Good evening"));
  assert.deepEqual(speech.synthesized.at(-1), {
    model: "tts-1",
    input: "Good evening",
    voice: "nova",
    response_format: "opus",
  });
  assert.equal(texts(47).indexOf("Good evening"), texts(47).length - 2, "the text went before it");

  say(47, "/voice replies off");
  await until(47, /^Answers are sent as text/);
  say(47, "say: Quiet");
  await until(47, /^Quiet$/);
  speech.failNext(400);
  say(47, "/voice replies on");
  say(47, "say: Given up");
  await until(47, /^Given up$/);
  say(47, "say: Heard again");
  await eventually(() => sounds(47).length === 2);
  assert.deepEqual(sounds(47).at(-1)?.content, speech.soundOf("Heard again"));
  assert.deepEqual(speech.refusals, []);
});

test("sends the audio of an answer once when any process dies during synthesis", async () => {
  for (const point of ["store.before_spoken_settle", "store.after_spoken_settle"]) {
    const before = sounds(47).length;
    await cluster.fault(point, "kill");
    say(47, `say: once at ${point}`);
    await eventually(() => sounds(47).length > before);
    await eventually(async () => (await cluster.armed()).length === 0);
    say(47, `say: after ${point}`);
    await eventually(() => sounds(47).some(({ content }) => content.includes(`after ${point}`)));
    assert.equal(sounds(47).filter(({ content }) => content.includes(`once at ${point}`)).length, 1);
  }
});

test("sends one voice message with the requested voice when the agent uses its tool", async () => {
  say(48, 'tool: speak {"text":"The kettle boils.","voice":"onyx"}\nthen\nsay: told you');
  await until(48, /^told you$/);
  assert.deepEqual(
    sounds(48).map(({ kind, content }) => [kind, content]),
    [["voice", speech.soundOf("The kettle boils.")]],
  );
  assert.equal(speech.synthesized.at(-1)?.voice, "onyx");
});

test("shows the voice status to people who are not owners, and refuses their start", async () => {
  say(900, "/voice start");
  await until(900, /^\/voice start is for the owner only\.$/);
  say(900, "/voice");
  await until(900, /^Voice has not been used in this conversation/);
});

test("accepts the command over HTTP and lists its turns in the session", async () => {
  const conversation = "by-http";
  const command = async (text: string) => {
    const response = await client.fetch("/api/messages", {
      method: "POST",
      body: JSON.stringify({ conversation, text }),
    });
    return response.text();
  };
  assert.match(await command("/voice start loopback"), /Listening to loopback/);
  await final("say: overheard");
  const answered = async () => {
    const { sessions } = Sessions.parse(await (await client.fetch("/api/sessions")).json());
    const session = sessions.find(({ key }) => key.endsWith(conversation));
    if (session === undefined) return false;
    return (await (await client.fetch(`/api/sessions/${session.sessionId}/messages`)).text()).includes('"overheard"');
  };
  await eventually(answered);
  assert.match(await command("/voice stop"), /Voice stopped; 1 utterance received/);
});
const Sessions = z.object({ sessions: z.array(z.object({ sessionId: z.string(), key: z.string() })) });
