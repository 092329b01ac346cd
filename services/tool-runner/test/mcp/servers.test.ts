// MCP servers as the agent uses them: real programs of a real tool-runner, called over a real bus. Some are maintained
// servers from npm, others misbehave.
import assert from "node:assert/strict";
import { mkdir, realpath, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { after, before, describe, test } from "node:test";
import type { RunningService } from "@parley/chassis";
import { toolCatalog, toolsChanged, type OutputOf, type ToolDescriptor } from "@parley/contracts";
import { Cleanup, temporaryFolder } from "@parley/testing";
import { running } from "../support/commands.ts";
import { kill, launch } from "../support/launch.ts";
import { openRunnerFixture, type RunnerFixture } from "../support/runner-fixture.ts";
import { everything, filesystem, memory } from "./programs.ts";

const cleanup = new Cleanup();
let fixture: RunnerFixture;
let runner: RunningService;
let workspace: string;
let environment: Record<string, string>;

const own = (name: string) => fileURLToPath(new URL(`servers/${name}.ts`, import.meta.url));
/** The workspace as last argument tells its processes from those of other test files. */
const node = (name: string, mode = "tools") => ({
  command: process.execPath,
  args: ["--conditions=@parley/source", own(name), mode, workspace],
});

before(async () => {
  fixture = await openRunnerFixture(cleanup);
  ({ workspace } = await fixture.config("x"));
  await mkdir(workspace, { recursive: true });
  workspace = await realpath(workspace);
  const servers: Record<string, object> = {
    everything: { command: process.execPath, args: [everything, "stdio"] },
    filesystem: { command: process.execPath, args: [filesystem, workspace], risk: "low", trust_annotations: true },
    memory: {
      command: process.execPath,
      args: [memory],
      env: ["MEMORY_FILE_PATH"],
      tools: ["read_*", "create_entities"],
    },
    naughty: { ...node("naughty"), env: ["PARLEY_TOOL_NAUGHTY"], timeout_seconds: 30 },
    many: node("naughty", "many"),
    exits: node("naughty", "exits"),
    modern: { ...node("modern"), era: "2026", trust_annotations: true },
    either: node("modern"),
    missing: { command: "no-such-program-anywhere" },
    unset: { ...node("naughty"), env: ["PARLEY_TOOL_UNSET"] },
    disabled: { command: "never-started", enabled: false },
  };
  const settings = join(await temporaryFolder(cleanup), "parley.toml");
  const tables = Object.entries(servers).map(([name, server]) =>
    [
      `[mcp.servers.${name}]`,
      ...Object.entries(server).map(([key, value]) => `${key} = ${JSON.stringify(value)}`),
    ].join("\n"),
  );
  await writeFile(settings, tables.join("\n\n"));
  environment = {
    PARLEY_CONFIG: settings,
    PATH: process.env["PATH"] ?? "",
    MEMORY_FILE_PATH: join(workspace, "graph.jsonl"),
    PARLEY_TOOL_NAUGHTY: "its own secret",
    PARLEY_TOOL_OTHER: "somebody else's secret",
  };
  runner = await fixture.runner(
    "tool-runner-1",
    { mcpTimes: { firstMs: 20, maxMs: 100, breakAfter: 4, breakMs: 600_000, aliveMs: 1_000 } },
    environment,
  );
  await until((all) => all.filter(({ state }) => state === "ready").length === 8);
});
after(() => cleanup[Symbol.asyncDispose]());

type Statuses = NonNullable<OutputOf<typeof toolCatalog>["mcp"]>;

/** Resolves with the catalog when the servers have the expected states. */
async function until(wanted: (statuses: Statuses, tools: readonly ToolDescriptor[]) => boolean) {
  const changes = Promise.withResolvers<undefined>();
  let moved = changes;
  const heard = fixture.core.subscribe(toolsChanged, {}, () => moved.resolve(undefined));
  // A state may change without a change of the tools.
  const ticking = setInterval(() => moved.resolve(undefined), 100);
  try {
    for (;;) {
      moved = Promise.withResolvers();
      const catalog = await fixture.core.request(toolCatalog, {});
      if (wanted(catalog.mcp ?? [], catalog.tools)) return catalog;
      await moved.promise;
    }
  } finally {
    clearInterval(ticking);
    heard.close();
  }
}

async function call(tool: string, input: unknown = {}, timeoutMs = 20_000) {
  const [request] = await fixture.plan([{ tool, class: "once", input, timeoutMs }]);
  assert.ok(request !== undefined);
  const { state, result } = await fixture.call(request, timeoutMs + 10_000);
  return { state, content: result.content };
}

const described = async (name: string) => {
  const { tools } = await fixture.core.request(toolCatalog, {});
  return tools.find((tool) => tool.name === name);
};

describe("the list of tools", () => {
  test("contains every server's tools with prefixed names, sorted, and the built-in tools", async () => {
    const { tools } = await fixture.core.request(toolCatalog, {});
    const names = tools.map(({ name }) => name);
    assert.deepEqual(names, names.toSorted());
    for (const name of ["read", "mcp_resources", "mcp__everything__echo", "mcp__filesystem__read_text_file"]) {
      assert.ok(names.includes(name), name);
    }
    assert.ok(!names.includes("mcp_authorize"), "no server asks for consent");
  });

  test("omits tools that the operator does not allow", async () => {
    const { tools } = await fixture.core.request(toolCatalog, {});
    const memory = tools.map(({ name }) => name).filter((name) => name.startsWith("mcp__memory__"));
    assert.deepEqual(memory, ["mcp__memory__create_entities", "mcp__memory__read_graph"]);
  });

  test("names the author of a description, and copies the schema without its dialect", async () => {
    const tool = await described("mcp__naughty__env");
    assert.match(tool?.description ?? "", /MCP server naughty/);
    assert.deepEqual(tool?.inputSchema, { type: "object", properties: { a: { type: "string" } } });
    assert.equal(tool?.timeoutMs, 30_000);
  });

  test("lowers risk by annotations only for a trusted server, and raises it always", async () => {
    const facts = async (name: string) => {
      const { class: toolClass, readOnly, risk } = (await described(name)) ?? {};
      return { class: toolClass, readOnly, risk };
    };
    assert.deepEqual(await facts("mcp__naughty__where"), { class: "once", readOnly: false, risk: "high" });
    assert.deepEqual(await facts("mcp__naughty__crash"), { class: "once", readOnly: false, risk: "critical" });
    assert.deepEqual(await facts("mcp__filesystem__read_text_file"), { class: "pure", readOnly: true, risk: "low" });
    assert.deepEqual(await facts("mcp__filesystem__write_file"), { class: "idempotent", readOnly: false, risk: "low" });
    assert.deepEqual(await facts("mcp__modern__add"), { class: "pure", readOnly: true, risk: "high" });
    assert.deepEqual(await facts("mcp__either__add"), { class: "once", readOnly: false, risk: "high" });
  });

  test("fits 200 tools of one server, cuts descriptions and keeps names unique", async () => {
    const { tools } = await fixture.core.request(toolCatalog, {});
    const many = tools.filter(({ name }) => name.startsWith("mcp__many__"));
    assert.equal(many.length, 205);
    assert.equal(new Set(many.map(({ name }) => name)).size, 205);
    assert.ok(many.every(({ name, description }) => name.length <= 64 && description.length < 2_000));
    assert.equal(many.filter(({ name }) => name.startsWith("mcp__many__get_sum")).length, 3);
  });

  test("reports servers that do not start, without affecting the others", async () => {
    const { mcp } = await until((all) => all.some(({ server, state }) => server === "missing" && state === "broken"));
    const status = (name: string) => mcp?.find(({ server }) => server === name);
    assert.match(status("missing")?.problem ?? "", /program ".+" not found; install it or configure its path/);
    assert.doesNotMatch(
      status("missing")?.problem ?? "",
      /PARLEY_MCP_SERVER/,
      "the problem does not mention the wrapper",
    );
    assert.equal(status("unset")?.state, "off");
    assert.match(status("unset")?.problem ?? "", /PARLEY_TOOL_UNSET/);
    assert.equal(status("disabled"), undefined);
    assert.equal(status("everything")?.state, "ready");
    assert.match(
      (await call("mcp__missing__anything")).content,
      /has no tool mcp__missing__anything now; nothing was called. The server is broken/,
    );
  });

  // design: 003.35
  test("grows when a server announces more tools", async () => {
    assert.equal(await described("mcp__naughty__newcomer"), undefined);
    await call("mcp__naughty__grow");
    await until((_, tools) => tools.some(({ name }) => name === "mcp__naughty__newcomer"));
  });
});

describe("servers from npm", () => {
  test("everything: returns text, structured content once, pictures and links", async () => {
    assert.match((await call("mcp__everything__echo", { message: "hello" })).content, /Echo: hello/);
    const weather = (await call("mcp__everything__get-structured-content", { location: "Chicago" })).content;
    assert.equal(weather.match(/temperature/g)?.length, 1);
    assert.match(
      (await call("mcp__everything__get-tiny-image")).content,
      /\[image: image\/png, .*; attached as "image.png"/,
    );
    const links = (await call("mcp__everything__get-resource-links", { count: 2 })).content;
    const uri = /mcp_read\(\{"server":"everything","uri":"([^"]+)"\}\)/.exec(links)?.[1];
    assert.match((await call("mcp_read", { server: "everything", uri })).content, /demo:\/\/resource/);
  });

  test("everything: marks results as untrusted and returns its error for a wrong argument", async () => {
    const { state, content } = await call("mcp__everything__get-sum", { a: "one" });
    assert.equal(state, "failed");
    assert.match(content, /^\[untrusted [0-9a-f]{8}: the MCP server everything\./);
    assert.match(content, /expected number/);
  });

  test("everything: the workspace is its root", async () => {
    assert.match((await call("mcp__everything__get-roots-list")).content, new RegExp(`file://${workspace}`));
  });

  test("filesystem and memory: write and read files, store a graph in the configured file", async () => {
    const path = join(workspace, "from-mcp.txt");
    assert.equal((await call("mcp__filesystem__write_file", { path, content: "over MCP" })).state, "done");
    assert.match((await call("mcp__filesystem__read_text_file", { path })).content, /over MCP/);
    assert.equal((await call("mcp__filesystem__read_text_file", { path: "/etc/passwd" })).state, "failed");
    const entities = [{ name: "Ada", entityType: "person", observations: ["likes engines"] }];
    await call("mcp__memory__create_entities", { entities });
    assert.match((await call("mcp__memory__read_graph")).content, /likes engines/);
    assert.match((await call("read", { path: "graph.jsonl" })).content, /Ada/);
  });
});

describe("both eras", () => {
  // design: 003.35
  test("uses the era 2026 when configured and when discovered", async () => {
    for (const name of ["modern", "either"]) {
      assert.match((await call(`mcp__${name}__era`)).content, /modern, process \d+/);
      assert.match((await call(`mcp__${name}__add`, { a: 2, b: 3 })).content, /"sum": 5/);
    }
    const listed = await call("mcp_resources", { server: "modern" });
    assert.match(listed.content, /modern:\/\/greeting/);
    assert.match((await call("mcp_read", { server: "modern", uri: "modern://greeting" })).content, /good evening/);
  });

  test("uses the legacy era for a server that exits on the probe", async () => {
    const { mcp } = await fixture.core.request(toolCatalog, {});
    assert.equal(mcp?.find(({ server }) => server === "exits")?.state, "ready");
  });
});

describe("servers that misbehave", () => {
  // design: 002.26
  test("a crash during a call fails that call, and the next one works", async () => {
    const { state, content } = await call("mcp__naughty__crash");
    assert.equal(state, "failed");
    assert.match(content, /ended with code 3.*Whether the call took effect is unknown/s);
    assert.match((await call("mcp__naughty__where")).content, /-state\/program-cwd/);
  });

  // design: 002.26
  test("a call without a response ends at the time limit with its progress, and is cancelled", async () => {
    const { state, content } = await call("mcp__naughty__slow", {}, 3_000);
    assert.equal(state, "failed");
    assert.match(content, /did not finish within 3 seconds.*Last progress: 3 of 7 \(digging\)/s);
    assert.match((await call("mcp__naughty__cancelled")).content, /1 cancelled/);
  });

  test("a server that stops responding is restarted", async () => {
    await call("mcp__naughty__freeze", {}, 2_000);
    assert.match((await call("mcp__naughty__cancelled")).content, /0 cancelled/);
  });

  test("invalid lines on standard output are skipped", async () => {
    assert.match((await call("mcp__naughty__junk")).content, /after the junk/);
  });

  test("a message of 11 MB ends the server, not this service; a long one is cut", async () => {
    assert.match((await call("mcp__naughty__flood")).content, /more than 10485760 bytes/);
    const { content } = await call("mcp__naughty__long");
    assert.match(
      content,
      /begin y+\n\[Showing \d+ of \d+ characters from mcp__naughty__long; the others are missing here\]\ny+ end/,
    );
  });

  test("a response that violates the tool's own schema is an error", async () => {
    const { state, content } = await call("mcp__naughty__lies");
    assert.equal(state, "failed");
    assert.match(content, /answer/);
    assert.match((await call("mcp__naughty__refuse")).content, /returned an error: .*not like this/);
  });

  test("sampling is refused by default", async () => {
    const { content } = await call("mcp__naughty__sample");
    assert.match(content, /"error":\{"code":-32601/);
  });

  test("a server sees only its variables, PATH, LANG and those for Python's safety", async () => {
    const { content } = await call("mcp__naughty__env");
    const json = /^\{.*\}$/m.exec(content)?.[0] ?? "";
    const seen: unknown = JSON.parse(json);
    assert.ok(typeof seen === "object" && seen !== null);
    assert.deepEqual(
      Object.keys(seen)
        .filter((name) => !["PWD", "_", "SHLVL", "OLDPWD"].includes(name))
        .toSorted(),
      ["LANG", "PARLEY_MCP_SERVER", "PARLEY_TOOL_NAUGHTY", "PATH", "PYTHONNOUSERSITE", "PYTHONSAFEPATH"],
    );
  });
});

test("a call waits for a starting server as long as its start may take", async () => {
  const own = new Cleanup();
  try {
    const other = await openRunnerFixture(own);
    const settings = join(await temporaryFolder(own), "parley.toml");
    const server = '[mcp.servers.hanging]\ncommand = "sleep"\nargs = ["100000"]\nstart_timeout_seconds = 1\n';
    await writeFile(settings, server);
    // After its second failure the server would be called broken.
    const mcpTimes = { firstMs: 20, maxMs: 100, breakAfter: 2, breakMs: 600_000, aliveMs: 1_000 };
    await other.runner("tool-runner-1", { mcpTimes }, { ...environment, PARLEY_CONFIG: settings });
    const [request] = await other.plan([{ tool: "mcp__hanging__ask", class: "once" }]);
    assert.ok(request !== undefined);
    const { result } = await other.call(request, 30_000);
    assert.match(result.content, /nothing was called\. The server is (re)?starting/);
  } finally {
    await own[Symbol.asyncDispose]();
  }
});

describe("the end", () => {
  const servers = () =>
    running(`${process.execPath} --conditions=@parley/source ${own("naughty")}`).filter((line) =>
      line.trimEnd().endsWith(workspace),
    );

  test("a killed tool-runner leaves no server running", async () => {
    const before = servers().length;
    assert.ok(before > 0);
    const other = await launch(fixture, "tool-runner-2", environment);
    while (servers().length <= before) await delay(20);
    await kill(other);
    while (servers().length > before) await delay(20);
  });

  test("a tool-runner that stops ends all its servers", async () => {
    await runner.close();
    assert.deepEqual(servers(), []);
  });
});
