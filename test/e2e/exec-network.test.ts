// Network access of commands and their access to secrets, tested on a whole cluster.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { apiClient, Cleanup, startTestCluster, type ApiClient, type TestCluster } from "@parley/testing";
import { hasApt, onPath } from "@parley/local";

const skip = onPath("bwrap") === null && !(await hasApt()) ? "there is no bubblewrap here" : false;
const cleanup = new Cleanup();
const asked: string[] = [];
const secret = "tell-nobody-of-this";
let port: number;
let cluster: TestCluster;
let client: ApiClient;

before(async () => {
  if (skip !== false) return;
  const server = createServer((request, response) => {
    asked.push(`${request.url} ${request.headers.authorization}`);
    response.end("package");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  cleanup.add(async () => {
    server.closeAllConnections();
    server.close();
  });
  const bound = server.address();
  assert.ok(bound !== null && typeof bound === "object");
  ({ port } = bound);
  cluster = await startTestCluster(cleanup, {
    processes: [],
    model: true,
    settings: `
[permissions]
allow = ["exec"]
[tools.exec]
isolation = "bubblewrap"
allow_hosts = ["*.example.com"]
allow_private_hosts = ["localhost:${port}"]
[tools.secrets.exec]
REGISTRY_TOKEN = { env = "PARLEY_TOOL_REGISTRY" }
[profiles.careful]
tools = ["exec"]
min_isolation = "gvisor"
`,
    env: { "tool-runner": { PARLEY_TOOL_REGISTRY: secret } },
  });
  client = apiClient(cluster.httpUrls, cluster.token);
});
after(() => cleanup[Symbol.asyncDispose]());

/** Makes a turn run the command; returns the result that the model received. */
async function resultOf(command: string): Promise<string> {
  await client.ask(`tool: exec ${JSON.stringify({ command })}\nthen\nsay: done`);
  return JSON.stringify(cluster.strict?.requests.at(-1)?.messages.at(-1)?.content);
}

/** Uses the proxy despite NO_PROXY: the listed server of this test is called localhost. */
const fetched = (url: string) => `curl -sS --noproxy '' -H "authorization: $REGISTRY_TOKEN" ${url}`;

test("reaches only listed hosts with the secret, and hides it, when a command uses the network", { skip }, async () => {
  const told = await resultOf(`${fetched(`http://localhost:${port}/left-pad`)}; echo " for $REGISTRY_TOKEN"`);
  assert.match(told, /package for \*\*\*/);
  assert.match(told, /isolation: bubblewrap \(network: 2 listed hosts/);
  assert.deepEqual(asked, [`/left-pad ${secret}`]);
  const refused = await resultOf(fetched(`http://127.0.0.1:${port}/other`));
  assert.match(refused, /127\.0\.0\.1:\d+ is not in allow_hosts under \[tools\.exec\]/);
  assert.equal(asked.length, 1);
  assert.ok(!told.includes(secret) && !refused.includes(secret));
});

test("refuses only a profile's commands when the profile requires stronger isolation", { skip }, async () => {
  const before = cluster.strict?.requests.length ?? 0;
  const task = `tool: exec ${JSON.stringify({ command: "echo ran" })}\nthen\nsay: over`;
  await client.ask(`tool: sessions_spawn ${JSON.stringify({ prompt: task, profile: "careful" })}\nthen\nsay: done`);
  const told = JSON.stringify(cluster.strict?.requests.slice(before));
  assert.match(
    told,
    /exec is refused: this agent's commands require at least gvisor, and this tool-runner provides bubblewrap/,
  );
  assert.match(await resultOf("echo ran"), /ran\\n/);
});
