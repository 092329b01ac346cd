// Pure logic about MCP servers: names, backoff, catalog size, result texts, configuration, encrypted files.
import assert from "node:assert/strict";
import { copyFile, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import type { Tool as ServerTool } from "@modelcontextprotocol/client";
import { ParleySettingsSchema } from "@parley/contracts";
import { Cleanup, temporaryFolder } from "@parley/testing";
import fc from "fast-check";
import { limitTools, mcpToolName } from "../../src/mcp/catalog.ts";
import { TokenStore } from "../../src/mcp/oauth/token-store.ts";
import { mcpConfig, restartDelay, restartTimes, type McpServerConfig } from "../../src/mcp/server-config.ts";
import { ContentRejectedError } from "../../src/tool/attachments.ts";
import { toolOutput } from "../../src/mcp/result-text.ts";

const cleanup = new Cleanup();
after(() => cleanup[Symbol.asyncDispose]());

const place = { workspace: "/w", programFolder: "/state/program-cwd", searchPath: "/bin:/w/bin:.:" };

function configOf(servers: Record<string, object>, env: Record<string, string> = {}) {
  return mcpConfig(ParleySettingsSchema.shape.mcp.parse({ servers }), env, place);
}

function planOf(name: string, server: object = {}): McpServerConfig {
  const [plan] = configOf({ [name]: { command: "x", ...server } }).plans;
  assert.ok(plan !== undefined);
  return plan;
}

describe("names", () => {
  test("a plain name is kept", () => assert.equal(mcpToolName("files", "read_file"), "mcp__files__read_file"));

  test("names are valid and unique within a server", () => {
    const names = fc.uniqueArray(fc.oneof(fc.string(), fc.string({ minLength: 50, maxLength: 90 })), { maxLength: 30 });
    fc.assert(
      fc.property(names, (tools) => {
        const given = tools.map((tool) => mcpToolName("server", tool));
        assert.ok(given.every((name) => /^mcp__server__[A-Za-z0-9_-]{0,51}$/.test(name)));
        assert.equal(new Set(given).size, tools.length);
      }),
    );
  });

  test("rejects a server name that makes the start of the tool's name ambiguous", () => {
    const { mcp } = ParleySettingsSchema.shape;
    for (const name of ["a__b", "a_", "_a", "", "a b", "x".repeat(33)]) {
      assert.equal(mcp.safeParse({ servers: { [name]: { command: "x" } } }).success, false, name);
    }
    for (const name of ["a_b", "a-b", "Files2"])
      assert.ok(mcp.safeParse({ servers: { [name]: { command: "x" } } }).success, name);
  });
});

describe("pauses between attempts", () => {
  test("double up to a maximum, until the long break", () => {
    const times = { ...restartTimes, firstMs: 100, maxMs: 500, breakAfter: 6, breakMs: 9_000 };
    const pauses = [1, 2, 3, 4, 5, 6, 60].map((failures) => restartDelay(failures, times));
    assert.deepEqual(
      pauses.map(({ ms }) => ms),
      [100, 200, 400, 500, 500, 9_000, 9_000],
    );
    assert.deepEqual(
      pauses.map(({ broken }) => broken),
      [false, false, false, false, false, true, true],
    );
  });
});

describe("the catalog size limit", () => {
  const tools = (count: number, description: number): ServerTool[] =>
    Array.from({ length: count }, (_, index) => ({
      name: `tool${String(index).padStart(4, "0")}`,
      description: "d".repeat(description),
      inputSchema: { type: "object" as const },
    }));

  test("shortens the largest server first: a small one keeps its descriptions", () => {
    const { fitting, leftOut } = limitTools(
      [
        { plan: planOf("big"), tools: tools(200, 3_000) },
        { plan: planOf("small"), tools: tools(2, 900) },
      ],
      256 * 1024,
    );
    assert.equal(fitting.length, 202);
    assert.equal(leftOut.size, 0);
    const small = fitting.filter(({ server }) => server === "small");
    assert.ok(small.every(({ descriptor }) => descriptor.description.includes("d".repeat(900))));
  });

  test("is never exceeded; every server keeps some tools, and omitted ones are counted", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 400 }), fc.integer({ min: 20_000, max: 60_000 }), (count, maxBytes) => {
        const listed = ["a", "b", "c"].map((name, index) => ({
          plan: planOf(name),
          tools: tools(count * (index + 1), 400),
        }));
        const { fitting, leftOut } = limitTools(listed, maxBytes);
        const bytes = fitting.reduce((sum, { descriptor }) => sum + Buffer.byteLength(JSON.stringify(descriptor)), 0);
        assert.ok(bytes <= maxBytes);
        const missing = [...leftOut.values()].reduce((sum, each) => sum + each, 0);
        assert.equal(fitting.length + missing, count * 6);
        for (const name of ["a", "b", "c"]) assert.ok(fitting.some(({ server }) => server === name));
      }),
      { numRuns: 30 },
    );
  });
});

describe("configuration", () => {
  test("removes every folder that the agent can change from PATH when further folders are named", () => {
    const servers = ParleySettingsSchema.shape.mcp.parse({ servers: { local: { command: "serve" } } });
    const searchPath = "/bin:/w/bin:/named/a/bin:/named/b:/named/bin";
    const [plan] = mcpConfig(servers, {}, { ...place, folders: ["/named/a", "/named/b"], searchPath }).plans;
    assert.ok(plan?.reach.kind === "stdio");
    assert.equal(plan.reach.variables["PATH"], "/bin:/named/bin");
  });

  test("disables only the server whose variable is not set", () => {
    const { plans, off, secrets } = configOf(
      {
        web: { url: "https://mcp.example/mcp", token_env: "TOKEN", headers_env: { "x-team": "TEAM" } },
        local: { command: "serve", args: ["-x"], env: ["KEY"], tools: ["get_*"] },
        broken: { command: "serve", env: ["NOT_SET"] },
        consent: { url: "https://mcp.example/mcp", oauth: {} },
      },
      { TOKEN: "t0ken", TEAM: "blue", KEY: "k3y", OTHER: "nobody's" },
    );
    const [web, local] = plans;
    assert.deepEqual(web?.reach.kind === "http" && web.reach.headers, {
      "x-team": "blue",
      authorization: "Bearer t0ken",
    });
    assert.deepEqual(local?.reach, {
      kind: "stdio",
      command: "serve",
      args: ["-x"],
      cwd: "/state/program-cwd",
      variables: { PATH: "/bin", LANG: "C.UTF-8", PYTHONSAFEPATH: "1", PYTHONNOUSERSITE: "1", KEY: "k3y" },
    });
    assert.deepEqual([local.allows("get_x"), local.allows("set_x"), local.allows("xget_")], [true, false, false]);
    assert.deepEqual(
      off.map(({ name, problem }) => [name, /NOT_SET|PARLEY_MCP_KEY/.exec(problem)?.[0]]),
      [
        ["broken", "NOT_SET"],
        ["consent", "PARLEY_MCP_KEY"],
      ],
    );
    assert.deepEqual(secrets.toSorted(), ["blue", "k3y", "t0ken"]);
  });

  test("requires exactly one of command and url", () => {
    const { mcp } = ParleySettingsSchema.shape;
    for (const server of [
      {},
      { command: "x", url: "https://a.example" },
      { url: "https://a.example", args: ["x"] },
      { command: "x", token_env: "T" },
      { url: "ftp://a.example" },
      { url: "https://a.example", oauth: { grant: "client_credentials" } },
    ]) {
      assert.equal(mcp.safeParse({ servers: { a: server } }).success, false, JSON.stringify(server));
    }
  });
});

describe("an identity provider", () => {
  const identity = { token_url: "https://idp.example/token", client_id: "us", token_file: "/run/id-token" };
  const oauth = { grant: "cross_app_access", client_id: "me", client_secret_env: "SECRET", identity };
  const url = "https://a.example";

  test("receives the configured values, and the variables are not logged", () => {
    const named = { ...oauth, identity: { ...identity, client_secret_env: "IDP" } };
    const { plans, secrets, off } = configOf({ a: { url, oauth: named } }, { SECRET: "s3cret", IDP: "1dp" });
    assert.deepEqual(off, []);
    const [plan] = plans;
    assert.ok(plan?.reach.kind === "http");
    const wanted = { tokenUrl: identity.token_url, clientId: "us", clientSecret: "1dp", tokenFile: "/run/id-token" };
    assert.deepEqual(plan.reach.oauth?.identity, wanted);
    assert.deepEqual(secrets.toSorted(), ["1dp", "s3cret"]);
    assert.match(configOf({ a: { url, oauth: named } }, { SECRET: "s3cret" }).off[0]?.problem ?? "", /not set.*IDP/);
  });

  test("is configured completely, and only for cross-app access", () => {
    const { identity: _, ...unvouched } = oauth;
    for (const wrong of [
      unvouched,
      { ...oauth, grant: "authorization_code" },
      { grant: "cross_app_access", identity, client_id: "me" },
      { ...oauth, identity: { ...identity, token_file: "id-token" } },
    ]) {
      assert.throws(() => configOf({ a: { url, oauth: wrong } }), JSON.stringify(wrong));
    }
  });
});

describe("results", () => {
  test("names content without a store, and shows structured content once", async () => {
    const { content } = await toolOutput(
      "s",
      {
        content: [
          { type: "audio", mimeType: "audio/wav", data: "AAAA" },
          { type: "resource", resource: { uri: "a://b", mimeType: "text/x", text: "inside" } },
          { type: "resource", resource: { uri: "a://c", blob: "AAAA" } },
          { type: "text", text: ' {"a": 1} ' },
        ],
        structuredContent: { a: 1 },
      },
      ["[a note]"],
    );
    const lines = content.split("\n").slice(1);
    assert.deepEqual(lines.slice(0, -2), [
      "[audio: audio/wav, 3 bytes; not shown]",
      "[a://b, text/x]",
      "inside",
      "[a://c, unknown type, 3 bytes; not shown]",
      ' {"a": 1} ',
    ]);
    assert.equal(lines.at(-1), "[a note]");
  });

  test("attaches other content once, at most eight items, and reports rejected ones", async () => {
    const image = (data: string) => ({ type: "image" as const, mimeType: "image/png", data: btoa(data) });
    const contents = {
      keep: async (content: Uint8Array) => {
        const text = Buffer.from(content).toString();
        if (text === "bad") throw new ContentRejectedError("it is not wanted");
        return { sha256: text.padEnd(64, "0"), mediaType: "image/png", bytes: content.length };
      },
      fetch: () => Promise.reject(new Error("nobody fetches")),
    };
    const content = ["a", "a", "bad", "b", "c", "d", "e", "f", "g", "h", "i"].map(image);
    const output = await toolOutput("s", { content }, [], contents);
    assert.deepEqual(
      output.shownAttachments?.map(({ sha256, name }) => [sha256[0], name]),
      ["a", "b", "c", "d", "e", "f", "g", "h"].map((each) => [each, "image.png"]),
    );
    assert.match(output.content, /not shown: it is not wanted/);
    assert.equal(output.content.match(/not shown\]/g)?.length, 1);
  });
});

describe("the vault", () => {
  test("returns a value only with its key and under its own name", async () => {
    const folder = join(await temporaryFolder(cleanup), "vault");
    const vault = new TokenStore(folder, "the operator's key");
    await vault.put("a.tokens", { access_token: "very-secret" });
    assert.deepEqual(await vault.get("a.tokens"), { access_token: "very-secret" });
    assert.equal(await new TokenStore(folder, "another key").get("a.tokens"), undefined);
    await copyFile(join(folder, "a.tokens.sealed"), join(folder, "b.tokens.sealed"));
    assert.equal(await vault.get("b.tokens"), undefined);
    for (const name of await readdir(folder)) {
      assert.ok(!(await readFile(join(folder, name))).includes("very-secret"));
    }
    assert.deepEqual([await vault.remove("a.tokens"), await vault.remove("a.tokens")], [true, false]);
    assert.equal(await vault.get("a.tokens"), undefined);
  });
});
