// Hooks as agent-core uses them: requested over a real bus with its permissions, run by a real tool-runner as real
// commands and HTTP requests.
import assert from "node:assert/strict";
import { watch } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { Bus } from "@parley/bus";
import type { RunningService } from "@parley/chassis";
import { hookRun, WireError, type HookPayload, type HookResult } from "@parley/contracts";
import { Cleanup, openTestBus, startTestNats, temporaryFolder, testBaseConfig } from "@parley/testing";
import { z } from "zod";
import { readConfig } from "../src/config.ts";
import { start } from "../src/service.ts";
import { running, sleeper } from "./support/commands.ts";

const cleanup = new Cleanup();
let nats: Awaited<ReturnType<typeof startTestNats>>;
let core: Bus;
/** The tool-runner under test. */
let runner: RunningService;
let workspace: string;
let address: string;
/** How the test's server handles the next request. */
let respond: (request: IncomingMessage, body: string, response: ServerResponse) => void;

const PayloadJson = z.record(z.string(), z.unknown());

const preToolUse: HookPayload = {
  hook_event_name: "PreToolUse",
  session_id: "s1",
  session_key: "irc:main:#test",
  turn_id: "t1",
  permission_mode: "default",
  profile: null,
  tool_name: "exec",
  tool_use_id: "c1",
  tool_input: { command: "ls" },
};

/** Files that hooks may create. Hooks never run concurrently here. */
const sleep = sleeper();

/** The settings of the runner under test, one hook per line. `$ADDRESS` is the test's server. */
const hooks = [
  { name: "says-input", command: "cat > said.json" },
  { name: "rewrites", command: `echo '{"hookSpecificOutput": {"updatedInput": {"command": "ls -a"}}}'` },
  { name: "denies", command: `echo '{"decision": "deny", "reason": "not on a Sunday"}'` },
  { name: "exit-2", command: "echo 'the branch is protected' >&2; exit 2" },
  { name: "exit-3", command: "echo 'something broke' >&2; exit 3" },
  { name: "killed", command: "kill -TERM $$" },
  { name: "slow", command: `${sleep} & ${sleep}`, timeout_seconds: 0.4 },
  { name: "stubborn", command: `trap '' TERM INT HUP; setsid ${sleep} & ${sleep}`, timeout_seconds: 0.4 },
  { name: "junk", command: "echo no JSON at all" },
  { name: "wrong", command: `echo '{"decision": "perhaps"}'` },
  { name: "floods", command: `yes '{ "${sleep}": 1 }'` },
  { name: "complains", command: `head -c 200000 /dev/zero >&2; echo '{"decision": "allow"}'` },
  { name: "leaves-a-child", command: `setsid ${sleep} & ${sleep} & echo '{"decision": "allow"}'` },
  { name: "silent", command: ":" },
  { name: "shows-env", command: "env > seen.txt", env: ["PARLEY_HOOK_KEY"] },
  { name: "interrupted", command: `[ -e begun ] && echo '{"decision": "allow"}' || { touch begun; ${sleep}; }` },
  { name: "post", url: "$ADDRESS/hook", token_env: "PARLEY_HOOK_TOKEN", timeout_seconds: 60 },
  { name: "impatient", url: "$ADDRESS/hook", timeout_seconds: 0.5 },
];

const asToml = (value: unknown) => JSON.stringify(value).replaceAll("$ADDRESS", address);

/** The folder of the settings, in which hooks run. */
let folder: string;

async function startRunner(replica: string) {
  folder ??= await temporaryFolder(cleanup);
  const config = join(folder, "parley.toml");
  const tables = hooks.map((hook) =>
    Object.entries({ event: "PreToolUse", ...hook }).map(([key, value]) => `${key} = ${asToml(value)}`),
  );
  await writeFile(config, tables.map((lines) => ["[[hooks]]", ...lines, ""].join("\n")).join("\n"));
  const env = {
    PARLEY_CONFIG: config,
    PARLEY_WORKSPACE: workspace,
    PARLEY_EXEC_ISOLATION: "none",
    PARLEY_DRAIN_MS: "200",
    PARLEY_REPLICA: replica,
    PARLEY_HOOK_KEY: "the-key-of-the-hook",
    PARLEY_HOOK_TOKEN: "the-token-of-the-hook",
    PARLEY_OTHER: "nobody's business",
  };
  runner = await start(readConfig(env, testBaseConfig(nats, "tool-runner", env)));
}

before(async () => {
  nats = await startTestNats(cleanup);
  workspace = await temporaryFolder(cleanup);
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => respond(request, Buffer.concat(chunks).toString("utf8"), response));
  });
  const port = await new Promise<number>((resolve) => {
    server.listen(0, "127.0.0.1", () => {
      const bound = server.address();
      resolve(typeof bound === "object" && bound !== null ? bound.port : 0);
    });
  });
  cleanup.add(async () => {
    server.closeAllConnections();
    server.close();
  });
  address = `http://127.0.0.1:${port}`;
  core = await openTestBus(nats, "agent-core", cleanup);
  await startRunner("runner-1");
});
after(async () => {
  await runner.close();
  await cleanup[Symbol.asyncDispose]();
});

function ask(hook: string, payload: HookPayload = preToolUse): Promise<HookResult> {
  return core.request(hookRun, { hook, payload }, { timeoutMs: 10_000 });
}

async function reasonOf(hook: string): Promise<string> {
  const result = await ask(hook);
  assert.equal(result.outcome, "failed");
  return result.outcome === "failed" ? result.reason : "";
}

describe("a command", () => {
  test("receives the event and the workspace as JSON on standard input", async () => {
    assert.deepEqual(await ask("says-input"), { outcome: "answered", answer: {} });
    const said = PayloadJson.parse(JSON.parse(await readFile(join(folder, "said.json"), "utf8")));
    assert.deepEqual(said, { ...preToolUse, cwd: workspace });
  });

  test("rewrites the input of a tool", async () => {
    assert.deepEqual(await ask("rewrites"), {
      outcome: "answered",
      answer: { hookSpecificOutput: { updatedInput: { command: "ls -a" } } },
    });
  });

  test("denies, by JSON or by exit code 2 with the reason on standard error", async () => {
    assert.deepEqual(await ask("denies"), {
      outcome: "answered",
      answer: { decision: "deny", reason: "not on a Sunday" },
    });
    assert.deepEqual(await ask("exit-2"), {
      outcome: "answered",
      answer: { decision: "deny", reason: "the branch is protected" },
    });
  });

  test("that does not read its input still counts", async () => {
    const long = { ...preToolUse, tool_input: { command: "x".repeat(300_000) } };
    const result = await ask("denies", long);
    assert.equal(result.outcome === "answered" && result.answer.decision, "deny");
  });

  test("without output is neutral", async () => {
    assert.deepEqual(await ask("silent"), { outcome: "answered", answer: {} });
  });

  test("fails on another exit code or a signal", async () => {
    assert.match(await reasonOf("exit-3"), /exit code 3/);
    assert.match(await reasonOf("killed"), /SIGTERM/);
  });

  test("fails on invalid output", async () => {
    assert.match(await reasonOf("junk"), /not JSON/);
    assert.match(await reasonOf("wrong"), /decision/);
  });

  test("is killed on endless output, which is discarded", async () => {
    assert.match(await reasonOf("floods"), /more than 65536 bytes/);
    assert.deepEqual(running(`yes { "${sleep}"`), []);
  });

  test("with long standard error output still counts", async () => {
    assert.deepEqual(await ask("complains"), { outcome: "answered", answer: { decision: "allow" } });
  });

  // design: 003.24
  test("is killed with all its children on timeout, despite traps and new sessions", async () => {
    assert.match(await reasonOf("slow"), /longer than 0.4 s/);
    assert.match(await reasonOf("stubborn"), /longer than 0.4 s/);
    assert.deepEqual(running(sleep), []);
  });

  test("leaves no child process", async () => {
    assert.deepEqual(await ask("leaves-a-child"), { outcome: "answered", answer: { decision: "allow" } });
    assert.deepEqual(running(sleep), []);
  });

  test("sees only the variables that its settings name", async () => {
    process.env["PARLEY_CANARY"] = "canary-value";
    await ask("shows-env");
    const seen = (await readFile(join(folder, "seen.txt"), "utf8")).split("\n").map((line) => line.split("=")[0]);
    const ofTheShell = new Set(["PWD", "OLDPWD", "SHLVL", "_", ""]);
    assert.deepEqual(
      new Set(seen.filter((name = "") => !ofTheShell.has(name))),
      new Set(["LANG", "PARLEY_CALL", "PARLEY_HOOK_KEY", "PATH", "PYTHONNOUSERSITE", "PYTHONSAFEPATH"]),
    );
  });
});

describe("a URL", () => {
  test("receives the same JSON with its token, and its response is used", async () => {
    const asked = Promise.withResolvers<{ headers: IncomingMessage["headers"]; body: string }>();
    respond = ({ headers }, body, response) => {
      asked.resolve({ headers, body });
      response.end('{"decision": "ask", "reason": "who is this?"}');
    };
    assert.deepEqual(await ask("post"), {
      outcome: "answered",
      answer: { decision: "ask", reason: "who is this?" },
    });
    const { headers, body } = await asked.promise;
    assert.equal(headers.authorization, "Bearer the-token-of-the-hook");
    assert.equal(headers["content-type"], "application/json");
    assert.deepEqual(JSON.parse(body), { ...preToolUse, cwd: workspace });
  });

  test("with an empty response is neutral", async () => {
    respond = (_, __, response) => response.writeHead(204).end();
    assert.deepEqual(await ask("post"), { outcome: "answered", answer: {} });
  });

  test("fails on an error status", async () => {
    respond = (_, __, response) => response.writeHead(503).end('{"decision": "allow"}');
    assert.match(await reasonOf("post"), /status 503/);
  });

  test("fails on a redirect", async () => {
    let asked = 0;
    respond = (_, __, response) => {
      asked += 1;
      response.writeHead(307, { location: `${address}/elsewhere` }).end();
    };
    assert.match(await reasonOf("post"), /status 307/);
    assert.equal(asked, 1);
  });

  test("fails on a timeout or an endless response", async () => {
    respond = () => undefined;
    assert.match(await reasonOf("impatient"), /longer than 0.5 s/);
    respond = (_, __, response) => {
      const more = () => {
        while (!response.destroyed && response.write("x".repeat(16_384)));
      };
      response.on("drain", more);
      more();
    };
    assert.match(await reasonOf("post"), /more than 65536 bytes/);
  });

  test("fails when nothing listens", async () => {
    respond = (request) => request.socket.destroy();
    assert.match(await reasonOf("post"), /could not be reached/);
  });
});

describe("the caller", () => {
  test("can run only configured hooks, each for its own event", async () => {
    const refused = (error: unknown) => WireError.is(error, "NOT_FOUND");
    await assert.rejects(ask("rm -rf ."), refused);
    const stop: HookPayload = {
      hook_event_name: "Stop",
      session_id: "s1",
      session_key: "k",
      turn_id: "t1",
      permission_mode: "default",
      profile: null,
      exit_reason: "end_turn",
      last_assistant_message: "",
      stop_hook_active: false,
    };
    await assert.rejects(ask("denies", stop), refused);
  });

  test("must be agent-core: the bus refuses all others", async () => {
    await using local = new Cleanup();
    const gateway = await openTestBus(nats, "channel-gateway", local);
    await assert.rejects(gateway.request(hookRun, { hook: "silent", payload: preToolUse }, { timeoutMs: 300 }));
  });
});

test("ends a hook when its runner stops, and the next runner runs it", async () => {
  const begun = Promise.withResolvers<void>();
  const watcher = watch(folder, (_, name) => {
    if (name === "begun") begun.resolve();
  });
  const asked = ask("interrupted");
  await begun.promise;
  watcher.close();
  const first = runner;
  await startRunner("runner-2");
  await first.close();
  assert.deepEqual(await asked, { outcome: "answered", answer: { decision: "allow" } });
  assert.deepEqual(running(sleep), []);
});

test("does not start the runner when a hook's variable is missing", async () => {
  const base = testBaseConfig(nats, "tool-runner");
  const settings = {
    ...base.settings,
    hooks: [
      {
        event: "PreToolUse" as const,
        command: "true",
        env: ["PARLEY_HOOK_KEY"],
        timeout_seconds: 1,
        on_failure: "open" as const,
      },
    ],
  };
  assert.throws(
    () => readConfig({}, { ...base, settings }),
    /hook PreToolUse-0 requires the environment variable PARLEY_HOOK_KEY/,
  );
});
