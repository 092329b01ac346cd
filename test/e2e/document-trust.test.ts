// A note with untrusted content that its owner reads and marks as trusted, in a whole cluster.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import { pollUntil } from "@parley/testing/until";
import { apiClient, Cleanup, startTestCluster, type ApiClient, type TestCluster } from "@parley/testing";
import { z } from "zod";
import { parleyOnTerminal, runParley } from "../../packages/cli/test/support/parley.ts";

const cleanup = new Cleanup();
let cluster: TestCluster;
let client: ApiClient;

before(async () => {
  cluster = await startTestCluster(cleanup, { processes: [], settings: '[session]\npolicy = "per_conversation"\n' });
  client = apiClient(cluster.httpUrls, cluster.token);
});
after(() => cleanup[Symbol.asyncDispose]());

const docs = (...args: string[]) => runParley(cluster.home, ["docs", ...args]);
const call = (tool: string, input: object) => `tool: ${tool} ${JSON.stringify(input)}`;

const Approvals = z.object({ approvals: z.array(z.object({ id: z.string(), tool: z.string() })) });

async function questions() {
  return Approvals.parse(await (await client.fetch("/api/approvals")).json()).approvals;
}

/** A turn that requests an approval for one call of this tool, and receives this decision. */
async function turnThatAsks(script: string, decision: "allow" | "deny", of = "memory_write"): Promise<void> {
  const message = await client.post(script, { conversation: randomUUID() });
  const ended = new AbortController();
  const settled = client.settled(message, 20_000).finally(() => ended.abort());
  settled.catch(() => undefined);
  const asked = await pollUntil(async () => {
    const found = await questions();
    return (found.length > 0 || ended.signal.aborted) && found;
  }, "the question");
  assert.deepEqual(
    asked.map(({ tool }) => tool),
    [of],
  );
  const decided = await client.fetch(`/api/approvals/${asked[0]?.id ?? ""}`, {
    method: "POST",
    body: JSON.stringify({ decision }),
  });
  assert.equal(decided.status, 200);
  await settled;
}

async function untrustedNote(path: string, content: string): Promise<void> {
  const script = [call("web_fetch", { url: "http://127.0.0.1:1/" }), "then", call("memory_write", { content, path })];
  await turnThatAsks(script.join("\n"), "allow");
}

const readAndWrite = (path: string) =>
  [call("memory_get", { path }), "then", call("memory_write", { content: "Read it." }), "then", "say: done"].join("\n");

// design: 000.25
test("taints a turn that reads an untrusted note until the owner marks the note as trusted", async () => {
  const path = "memory/letters.md";
  await untrustedNote(path, "The baker asks to be paid in advance.");
  await turnThatAsks(readAndWrite(path), "deny");

  const { stdout: text } = await docs("show", path);
  const edited = await client.fetch("/api/documents/put", {
    method: "POST",
    body: JSON.stringify({ path, content: `${text}Answered on Monday.\n`, expectedVersion: 1 }),
  });
  assert.equal(edited.status, 200);
  await turnThatAsks(readAndWrite(path), "deny");
  const shown = await docs("show", path, "--authors");
  assert.match(
    shown.stdout,
    /^untrusted {2}- The baker asks to be paid in advance\.\nowner {6}Answered on Monday\.\n$/m,
  );
  assert.match(
    shown.stderr,
    /^Version 2; \d lines? (?:is|are) untrusted\. .*parley docs vouch memory\/letters\.md --version 2/,
  );

  const no = parleyOnTerminal(cluster.home, ["docs", "vouch", path]);
  await no.says(
    /memory\/letters\.md (?:is|are) untrusted:[^]*The baker asks[^]*Mark all lines of version 2 as trusted\? \[y\/N\] /,
  );
  no.write("\r");
  await no.says(/Nothing was marked as trusted\./);
  assert.equal((await no.outcome()).code, 0);
  const left = parleyOnTerminal(cluster.home, ["docs", "vouch", path]);
  await left.says(/\[y\/N\] /);
  left.write("\u0003");
  await left.says(/Nothing was marked as trusted\./);
  await left.outcome();
  await turnThatAsks(readAndWrite(path), "deny");

  const yes = parleyOnTerminal(cluster.home, ["docs", "vouch", path]);
  await yes.says(/\[y\/N\] /);
  yes.write("y\r");
  await yes.says(/All lines of memory\/letters\.md are now yours, as version 3\./);
  assert.equal((await yes.outcome()).code, 0);
  assert.equal((await docs("show", path)).stdout, `${text}Answered on Monday.\n`);

  const free = await client.settled(await client.post(readAndWrite(path), { conversation: randomUUID() }), 20_000);
  assert.equal(free.text, "done");
  assert.deepEqual(await questions(), []);
  const written = await docs("show", "MEMORY.md", "--authors", "--json");
  const { authors } = z.object({ authors: z.array(z.string()) }).parse(JSON.parse(written.stdout));
  assert.equal(authors.at(-1), "agent", "what that turn wrote is the agent's own");
});

test("requests approval when a file tool shows untrusted lines of a note, not for other lines", async () => {
  const path = "memory/errands.md";
  await untrustedNote(path, "The cooper sends a boy at noon.");
  const { stdout: text } = await docs("show", path);
  const edited = await client.fetch("/api/documents/put", {
    method: "POST",
    body: JSON.stringify({ path, content: `${text}Bought a sundial.\n`, expectedVersion: 1 }),
  });
  assert.equal(edited.status, 200);
  const thenRun = (tool: string, input: object) =>
    [call(tool, input), "then", call("exec", { command: "echo it ran" }), "then", "say: done"].join("\n");
  await turnThatAsks(thenRun("read", { path }), "deny", "exec");
  await turnThatAsks(thenRun("grep", { pattern: "cooper" }), "deny", "exec");
  const harmless = thenRun("grep", { pattern: "sundial", path });
  const free = await client.settled(await client.post(harmless, { conversation: randomUUID() }), 20_000);
  assert.equal(free.text, "done");
  assert.deepEqual(await questions(), []);
});

test("does not trust lines that were added after the review, nor restored versions", async () => {
  const path = "memory/hearsay.md";
  await untrustedNote(path, "The dirigible company pays double.");
  await untrustedNote(path, "It pays three times as much.");
  const late = await docs("vouch", path, "--version", "1");
  assert.equal(late.code, 1);
  assert.match(
    late.stderr,
    /is at version 2: it was changed in the meantime; read it again and retry\. Nothing was marked as trusted\./,
  );
  assert.match(late.stderr, /parley docs diff memory\/hearsay\.md --from 1, then run vouch again/);
  const done = await docs("vouch", path, "--version", "2");
  assert.deepEqual([done.code, done.stdout], [0, "All lines of memory/hearsay.md are now yours, as version 3.\n"]);
  assert.doesNotMatch((await docs("show", path, "--authors")).stdout, /^untrusted/m);
  const back = await docs("restore", path, "--version", "1");
  assert.match(
    back.stderr,
    /It contains \d lines? written from untrusted content.*parley docs vouch memory\/hearsay\.md shows them/,
  );
  await turnThatAsks(readAndWrite(path), "deny");
});
