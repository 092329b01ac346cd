// MCP servers over HTTP: the one from npm as a process of its own, going away and coming back; and one that a person has to let the agent
// into, with two tool-runners that share what they were given.
import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { Bus } from "@parley/bus";
import { mcpAuthorize, toolCatalog, toolsChanged, type McpServerStatus } from "@parley/contracts";
import { Cleanup, temporaryFolder } from "@parley/testing";
import { openStage, type Stage } from "../support/stage.ts";
import { everything as everythingProgram } from "./programs.ts";
import { startGuarded, type Guarded } from "./servers/guarded.ts";

const cleanup = new Cleanup();
let stage: Stage;
let gateway: Bus;
let guarded: Guarded;
let everything: ChildProcess;
let port: number;
let workspace: string;

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === "object" && address !== null ? address.port : 0;
}

async function startEverything(): Promise<ChildProcess> {
  const env = { PATH: process.env["PATH"] ?? "", PORT: String(port) };
  const child = spawn(process.execPath, [everythingProgram, "streamableHttp"], {
    env,
    stdio: ["ignore", "ignore", "pipe"],
  });
  cleanup.add(() => stop(child));
  await new Promise<void>((resolve, reject) => {
    child.stderr.on("data", (chunk: Buffer) => (chunk.includes("listening") ? resolve() : undefined));
    child.once("exit", () => reject(new Error("it ended")));
  });
  return child;
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGKILL");
  await ended;
}

before(async () => {
  stage = await openStage(cleanup);
  gateway = await stage.stack.bus("channel-gateway");
  ({ workspace } = await stage.config("x"));
  guarded = await startGuarded();
  cleanup.add(() => guarded.stop());
  port = await freePort();
  everything = await startEverything();
  const settings = join(await temporaryFolder(cleanup), "parley.toml");
  await writeFile(
    settings,
    `[mcp.servers.everything]
url = "http://127.0.0.1:${port}/mcp"

[mcp.servers.guarded]
url = "${guarded.url}"
oauth = {}
`,
  );
  const env = { PARLEY_CONFIG: settings, PARLEY_MCP_KEY: "the operator's long key" };
  const mcpTimes = { firstMs: 20, maxMs: 100, breakAfter: 1_000 };
  for (const name of ["tool-runner-1", "tool-runner-2"]) await stage.runner(name, { mcpTimes }, env);
  await states("everything", "ready");
});
after(() => cleanup[Symbol.asyncDispose]());

/** Resolves when both replicas have said so of the server: whoever is asked answers, so it is asked until both agree for a while. */
async function states(server: string, state: McpServerStatus["state"]): Promise<void> {
  let moved = Promise.withResolvers<undefined>();
  const heard = stage.core.subscribe(toolsChanged, {}, () => moved.resolve(undefined));
  const ticking = setInterval(() => moved.resolve(undefined), 50);
  try {
    for (let agreed = 0; agreed < 12;) {
      moved = Promise.withResolvers();
      const { mcp } = await stage.core.request(toolCatalog, {});
      agreed = mcp?.find((each) => each.server === server)?.state === state ? agreed + 1 : 0;
      if (agreed === 0) await moved.promise;
    }
  } finally {
    clearInterval(ticking);
    heard.close();
  }
}

async function call(tool: string, input: unknown = {}) {
  const [request] = await stage.plan([{ tool, class: "once", input }]);
  assert.ok(request !== undefined);
  const { state, result } = await stage.call(request);
  return { state, content: result.content };
}

describe("everything over streamable HTTP", () => {
  // design: 003.18
  test("is used like any other server, resources and all", async () => {
    assert.match((await call("mcp__everything__echo", { message: "over HTTP" })).content, /Echo: over HTTP/);
    const resources = (await call("mcp_resources", { server: "everything" })).content;
    assert.match(resources, /template demo:\/\/resource\/dynamic\/text\/\{resourceId\}/);
    const read = await call("mcp_read", { server: "everything", uri: "demo://resource/dynamic/text/1" });
    assert.match(read.content, /Resource 1/);
  });

  test("that went away fails the call; that came back, without knowing us any more, works again", async () => {
    await stop(everything);
    const { state, content } = await call("mcp__everything__echo", { message: "anybody?" });
    assert.equal(state, "failed");
    assert.match(content, /everything/);
    everything = await startEverything();
    await states("everything", "ready");
    // Asked several times: each replica has a session of its own, and both are gone.
    for (const message of ["1", "2", "3", "4"]) {
      assert.match((await call("mcp__everything__echo", { message })).content, new RegExp(`Echo: ${message}`));
    }
  });
});

describe("a server that a person has to let the agent into", () => {
  const answerOf = (link: URL) => ({
    server: "guarded",
    state: link.searchParams.get("state") ?? "",
    code: link.searchParams.get("code"),
    error: null,
    issuer: null,
  });

  /** What a browser does with the link, up to the way back. */
  async function consent(content: string): Promise<URL> {
    const link = /https?:\/\/\S+/.exec(content)?.[0] ?? "";
    assert.match(link, /code_challenge_method=S256/);
    const response = await fetch(link, { redirect: "manual" });
    const back = new URL(response.headers.get("location") ?? "");
    assert.equal(back.origin + back.pathname, "http://127.0.0.1:8787/oauth/mcp/guarded/callback");
    return back;
  }

  test("is used by every tool-runner once the link was opened; the code and the link are good once", async () => {
    await states("guarded", "consent");
    const back = await consent((await call("mcp_authorize", { server: "guarded" })).content);
    const wrong = await gateway.request(mcpAuthorize, { ...answerOf(back), state: "guessed" });
    assert.equal(wrong.outcome, "unknown_link");
    const done = await gateway.request(mcpAuthorize, answerOf(back));
    assert.deepEqual(done, { outcome: "done", message: "The agent may now use guarded." });
    await states("guarded", "ready");
    assert.match((await call("mcp__guarded__secret")).content, /the treasure/);
    assert.equal((await gateway.request(mcpAuthorize, answerOf(back))).outcome, "unknown_link");
    assert.match((await call("mcp_authorize", { server: "guarded" })).content, /No consent is required now/);
  });

  test("is used on with new tokens when the old ones are over, without asking anybody", async () => {
    guarded.revoke(false);
    assert.match((await call("mcp__guarded__secret")).content, /the treasure/);
    assert.equal(guarded.granted.at(-1), "refresh_token");
  });

  test("asks again when nothing it was given is good any more, and a no is a no", async () => {
    guarded.revoke(true);
    const { state, content } = await call("mcp__guarded__secret");
    assert.equal(state, "failed");
    assert.match(content, /Ask the user to open this link, then try again: http:\S+\/authorize\?/);
    const back = await consent(content);
    const refused = await gateway.request(mcpAuthorize, { ...answerOf(back), code: null, error: "access_denied" });
    assert.deepEqual(refused, { outcome: "refused", message: "Access to guarded was not granted: access_denied." });
  });

  test("leaves nothing readable on the disk", async () => {
    const folder = join(dirname(workspace), ".workspace-mcp");
    const texts = await contentsOf(folder);
    assert.ok([...texts.keys()].some((name) => name.startsWith("guarded.client")));
    for (const text of texts.values()) assert.doesNotMatch(text, /verifier|client_id|access_token/);
  });
});

/** Every file's content by its name, drafts too. A draft that gets its name while we look is read under that. */
async function contentsOf(folder: string): Promise<Map<string, string>> {
  for (;;) {
    try {
      const names = await readdir(folder);
      return new Map(
        await Promise.all(names.map(async (name) => [name, await readFile(join(folder, name), "latin1")] as const)),
      );
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "ENOENT")) throw error;
    }
  }
}
