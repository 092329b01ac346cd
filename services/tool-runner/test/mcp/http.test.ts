// MCP servers over HTTP: the npm server in its own process, stopped and restarted; and one that requires a person's
// consent, with two tool-runners that share its tokens.
import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { Bus } from "@parley/bus";
import {
  healthReports,
  mcpAuthorize,
  publicKeyInState,
  sealedCodeContext,
  type McpServerStatus,
} from "@parley/contracts";
import { createSealingKeys, seal } from "@parley/kit";
import { freePort } from "@parley/local";
import { Cleanup, pollUntil, temporaryFolder } from "@parley/testing";
import { openRunnerFixture, type RunnerFixture } from "../support/runner-fixture.ts";
import { everything as everythingProgram } from "./programs.ts";
import { startGuarded, type Guarded } from "./servers/guarded.ts";

const cleanup = new Cleanup();
let fixture: RunnerFixture;
let gateway: Bus;
let guarded: Guarded;
let everything: ChildProcess;
let port: number;
let workspace: string;

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
  fixture = await openRunnerFixture(cleanup);
  gateway = await fixture.stack.bus("channel-gateway");
  ({ workspace } = await fixture.config("x"));
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
  for (const name of ["tool-runner-1", "tool-runner-2"]) await fixture.runner(name, { mcpTimes }, env);
  await states("everything", "ready");
});
after(() => cleanup[Symbol.asyncDispose]());

/** Resolves when both replicas report this state of a server. */
async function states(server: string, state: McpServerStatus["state"]): Promise<void> {
  await pollUntil(async () => {
    const reports = await gateway.gather(healthReports["tool-runner"], {}, 200);
    const isThere = reports.filter(({ details }) => String(details["mcp"]).includes(`${server}: ${state}`));
    return isThere.length === 2;
  }, `${server} is ${state}`);
}

async function call(tool: string, input: unknown = {}) {
  const [request] = await fixture.plan([{ tool, class: "once", input }]);
  assert.ok(request !== undefined);
  const { state, result } = await fixture.call(request);
  return { state, content: result.content };
}

describe("everything over streamable HTTP", () => {
  // design: 003.18
  test("offers its tools and resources", async () => {
    assert.match((await call("mcp__everything__echo", { message: "over HTTP" })).content, /Echo: over HTTP/);
    const resources = (await call("mcp_resources", { server: "everything" })).content;
    assert.match(resources, /template demo:\/\/resource\/dynamic\/text\/\{resourceId\}/);
    const read = await call("mcp_read", { server: "everything", uri: "demo://resource/dynamic/text/1" });
    assert.match(read.content, /Resource 1/);
  });

  test("fails calls while it is down, and works after a restart with a new session", async () => {
    await stop(everything);
    const { state, content } = await call("mcp__everything__echo", { message: "anybody?" });
    assert.equal(state, "failed");
    assert.match(content, /everything/);
    everything = await startEverything();
    await states("everything", "ready");
    // Called several times: each replica has its own session, and both have expired.
    for (const message of ["1", "2", "3", "4"]) {
      assert.match((await call("mcp__everything__echo", { message })).content, new RegExp(`Echo: ${message}`));
    }
  });
});

describe("a server that requires a person's consent", () => {
  /** What the gateway sends after the redirect: the code sealed to the key in the link. */
  const answerOf = (back: URL) => {
    const link = { server: "guarded", state: back.searchParams.get("state") ?? "" };
    const code = back.searchParams.get("code") ?? "";
    const sealedCode = seal(code, publicKeyInState(link.state) ?? "", sealedCodeContext(link));
    return { ...link, sealedCode, error: null, issuer: null };
  };

  /** Follows the link like a browser, up to the redirect back. */
  async function consent(content: string): Promise<URL> {
    const link = /https?:\/\/\S+/.exec(content)?.[0] ?? "";
    assert.match(link, /code_challenge_method=S256/);
    const response = await fetch(link, { redirect: "manual" });
    const back = new URL(response.headers.get("location") ?? "");
    assert.equal(back.origin + back.pathname, "http://127.0.0.1:8787/oauth/mcp/guarded/callback");
    return back;
  }

  test("is usable on every tool-runner after consent; code and link work once", async () => {
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

  test("is used with refreshed tokens without asking again", async () => {
    guarded.revoke(false);
    assert.match((await call("mcp__guarded__secret")).content, /the treasure/);
    assert.equal(guarded.granted.at(-1), "refresh_token");
  });

  test("requests consent again when all tokens are invalid, and reports a denial", async () => {
    guarded.revoke(true);
    const { state, content } = await call("mcp__guarded__secret");
    assert.equal(state, "failed");
    assert.match(content, /Ask the user to open this link, then try again: http:\S+\/authorize\?/);
    const back = await consent(content);
    const refused = await gateway.request(mcpAuthorize, {
      ...answerOf(back),
      sealedCode: null,
      error: "access_denied",
    });
    assert.deepEqual(refused, { outcome: "refused", message: "Access to guarded was not granted: access_denied." });
  });

  test("refuses a code that is not sealed to the key of its link", async () => {
    const answer = answerOf(await consent((await call("mcp__guarded__secret")).content));
    const sealedCode = seal("a code", createSealingKeys().publicKey, sealedCodeContext(answer));
    const refused = await gateway.request(mcpAuthorize, { ...answer, sealedCode });
    assert.deepEqual(refused, {
      outcome: "failed",
      message: "The authorization code was not sealed for this link. Request a new one.",
    });
  });

  test("leaves no plain text on disk", async () => {
    const folder = join(dirname(workspace), ".workspace-mcp");
    const texts = await contentsOf(folder);
    assert.ok([...texts.keys()].some((name) => name.startsWith("guarded.client")));
    for (const text of texts.values()) assert.doesNotMatch(text, /verifier|client_id|access_token/);
  });
});

/** The content of every file by name, including temporary files; tolerates a rename during the read. */
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
