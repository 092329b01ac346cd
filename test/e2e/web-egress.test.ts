// A tool-runner whose deployment allows internet access, in a whole cluster: it fetches pages, and commands do not get the access.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { pollUntil } from "@parley/testing/until";
import { apiClient, Cleanup, startTestCluster, type ApiClient, type TestCluster } from "@parley/testing";
import { parse } from "yaml";
import { z } from "zod";
import { runParley } from "../../packages/cli/test/support/parley.ts";

const Override = z.object({
  services: z.object({ "tool-runner": z.object({ environment: z.record(z.string(), z.string()) }) }),
});
const root = join(import.meta.dirname, "../..");
const override = parse(readFileSync(join(root, "infra/docker/web.yml"), "utf8")) as unknown;

/** The tool-runner's environment from the override, with an empty .env or with these values. */
function told(env: Readonly<Record<string, string>> = {}): Record<string, string> {
  const { environment } = Override.parse(override).services["tool-runner"];
  const filled = (text: string) =>
    text.replace(/\$\{(\w+):-(\w*)\}/g, (_all, name: string, otherwise: string) => env[name] ?? otherwise);
  return Object.fromEntries(Object.entries(environment).map(([name, value]) => [name, filled(value)]));
}

const Doctor = z.object({
  checks: z.array(z.object({ id: z.string(), severity: z.string(), message: z.string(), fix: z.string().nullable() })),
});

async function sandboxOf(cluster: TestCluster) {
  const { stdout } = await runParley(cluster.home, ["doctor", "--json"]);
  return Doctor.parse(JSON.parse(stdout)).checks.find(({ id }) => id === "sandbox");
}

describe("with the settings of infra/docker/web.yml, without bubblewrap", () => {
  const cleanup = new Cleanup();
  const asked: string[] = [];
  let page: string;
  let cluster: TestCluster;
  let client: ApiClient;

  before(async () => {
    const server = createServer((request, response) => {
      asked.push(request.url ?? "");
      response.writeHead(200, { "content-type": "text/plain" }).end("the page of the day");
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    cleanup.add(async () => {
      server.closeAllConnections();
      server.close();
    });
    const bound = server.address();
    assert.ok(bound !== null && typeof bound === "object");
    page = `http://127.0.0.1:${bound.port}`;
    cluster = await startTestCluster(cleanup, {
      processes: [],
      model: true,
      settings: '[permissions]\nallow = ["exec", "web_fetch"]\n[tools.web]\nallow_private = ["127.0.0.1"]\n',
      env: { "tool-runner": { ...told(), PARLEY_BWRAP: "/nonexistent/bwrap" } },
    });
    client = apiClient(cluster.httpUrls, cluster.token);
  });
  after(() => cleanup[Symbol.asyncDispose]());

  /** Makes a turn call the tool; returns the result that the model received. */
  async function answerTo(tool: string, input: object): Promise<string> {
    await client.ask(`tool: ${tool} ${JSON.stringify(input)}\nthen\nsay: done`);
    return JSON.stringify(cluster.strict?.requests.at(-1)?.messages.at(-1)?.content);
  }

  test("fetches a page and refuses a command that would fetch one", async () => {
    assert.match(await answerTo("web_fetch", { url: `${page}/fetched` }), /the page of the day/);
    const refused = await answerTo("exec", { command: `curl -s ${page}/commanded` });
    assert.match(refused, /exec is refused: bubblewrap .*PARLEY_WEB_EXEC_ISOLATION=container/);
    assert.deepEqual(asked, ["/fetched"]);
    assert.match((await sandboxOf(cluster))?.message ?? "", /exec refused: bubblewrap does not work here/);
  });
});

describe("with PARLEY_WEB_EXEC_ISOLATION=container in .env", () => {
  const cleanup = new Cleanup();
  let cluster: TestCluster;
  let client: ApiClient;

  before(async () => {
    const env = { "tool-runner": told({ PARLEY_WEB_EXEC_ISOLATION: "container" }) };
    cluster = await startTestCluster(cleanup, { processes: ["tool-runner"], model: true, env });
    client = apiClient(cluster.httpUrls, cluster.token);
  });
  after(() => cleanup[Symbol.asyncDispose]());

  test("warns in doctor and in the tool-runner's log that commands reach the internet", async () => {
    const sandbox = await sandboxOf(cluster);
    assert.equal(sandbox?.severity, "warning");
    assert.match(sandbox.message, /container: commands .* that network reaches the internet/);
    assert.ok(cluster.lines.some((line) => line.includes("commands not isolated from the internet")));
  });

  test("requests approval for a command and notes in its result that it had internet access", async () => {
    const message = await client.post('tool: exec {"command":"echo ran"}\nthen\nsay: done', {
      conversation: randomUUID(),
    });
    const ended = new AbortController();
    const settled = client.settled(message, 20_000).finally(() => ended.abort());
    settled.catch(() => undefined);
    const Approvals = z.object({ approvals: z.array(z.object({ id: z.string(), tool: z.string() })) });
    const waiting = async () => Approvals.parse(await (await client.fetch("/api/approvals")).json()).approvals;
    const questions = await pollUntil(async () => {
      const found = await waiting();
      return (found.length > 0 || ended.signal.aborted) && found;
    }, "the question");
    assert.deepEqual(
      questions.map(({ tool }) => tool),
      ["exec"],
    );
    const body = JSON.stringify({ decision: "allow" });
    await client.fetch(`/api/approvals/${questions[0]?.id ?? ""}`, { method: "POST", body });
    await settled;
    const told = JSON.stringify(cluster.strict?.requests.at(-1)?.messages.at(-1)?.content);
    assert.match(told, /ran\\n.*isolation: container only, with internet access/);
  });
});
