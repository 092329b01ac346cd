// The example as a channel of a gateway: its folder, its entry and a line of the list are all that a new channel needs.
import assert from "node:assert/strict";
import { once } from "node:events";
import { cp, mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { after, test } from "node:test";
import { Cleanup, temporaryFolder } from "@parley/testing";
import { startProcess } from "./support/gateway-process.ts";
import { startGatewayStack, token } from "./support/stack.ts";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const cleanup = new Cleanup();
after(() => cleanup[Symbol.asyncDispose]());

/** A copy of the sources that a gateway runs, whose packages refer to each other. */
async function sources(): Promise<string> {
  const copy = await temporaryFolder(cleanup);
  const packages = ["bus", "chassis", "contracts", "kit", "projections"].map((name) => `packages/${name}`);
  const parts = ["src", "node_modules", "package.json"];
  for (const folder of ["services/channel-gateway", ...packages])
    for (const part of parts)
      await cp(join(root, folder, part), join(copy, folder, part), { recursive: true, verbatimSymlinks: true });
  await symlink(join(root, "node_modules"), join(copy, "node_modules"));
  for (const file of ["package.json", "packages/console/package.json"]) await cp(join(root, file), join(copy, file));
  return copy;
}

/** Adds the example as its documentation says. */
async function addExample(copy: string): Promise<void> {
  const adapter = await readFile(join(root, "examples/channel/adapter.ts"), "utf8");
  const folder = join(copy, "services/channel-gateway/src/channels/example");
  await mkdir(folder);
  await writeFile(
    join(folder, "index.ts"),
    adapter
      .replaceAll("../../services/channel-gateway/src/channels/", "../")
      .replace('"./entry.ts"', '"@parley/contracts"'),
  );
  const channels = join(copy, "packages/contracts/src/channels");
  const entry = await readFile(join(root, "examples/channel/entry.ts"), "utf8");
  await writeFile(join(channels, "example.ts"), entry.replace('"@parley/contracts"', '"./entry.ts"'));
  const list = await readFile(join(channels, "index.ts"), "utf8");
  const listed = list
    .replace(/^import /m, 'import { exampleChannel } from "./example.ts";\nexport { exampleChannel };\nimport ')
    .replace(/(channelEntries: [^[]*\[\]? = \[)/, "$1\n  exampleChannel,");
  assert.match(listed, /= \[\n {2}exampleChannel,/);
  await writeFile(join(channels, "index.ts"), listed);
}

test("is configured, added while the gateway runs, and answers with its folder, its entry and the list", async () => {
  const stack = await startGatewayStack();
  cleanup.add(async () => stack[Symbol.asyncDispose]());
  const copy = await sources();
  await addExample(copy);

  const received: { to: string; text: string }[] = [];
  const arrived = Promise.withResolvers<void>();
  const receive = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    received.push(JSON.parse(await bodyOf(request)) as { to: string; text: string });
    response.end(JSON.stringify({ id: String(received.length) }));
    if (received.length === 2) arrived.resolve();
  };
  const chat = createServer((request, response) => void receive(request, response));
  chat.listen(0, "127.0.0.1");
  await once(chat, "listening");
  cleanup.add(async () => void chat.close());
  const url = `http://127.0.0.1:${(chat.address() as AddressInfo).port}`;

  const folder = await temporaryFolder(cleanup);
  const config = join(folder, "parley.toml");
  const text = `[channels.example.main]\nurl = "${url}"\nsecret_env = "PARLEY_CHANNEL_E"\nowners = ["ann"]\n`;
  await writeFile(config, `[session]\npolicy = "per_conversation"\n${text}`);
  const env = {
    PARLEY_CONFIG: config,
    PARLEY_CHANNEL_E: "s3cret",
    PARLEY_SECRETS_DIR: join(folder, "secrets"),
  };
  const gateway = await startProcess(stack, "example", folder, env, join(copy, "services/channel-gateway/src/main.ts"));
  cleanup.add(async () => void gateway.child.kill("SIGKILL"));
  const call = async (path: string, body?: object) => {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const init = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
    return fetch(`${gateway.url}${path}`, { headers, ...init });
  };
  const say = (account: string, secret: string, said: string) =>
    fetch(`${gateway.url}/channels/example/${account}/messages`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-secret": secret },
      body: JSON.stringify({ id: said, person: "ann", text: said }),
    });

  const { kinds } = (await (await call("/api/channel-kinds")).json()) as {
    kinds: { name: string; required: string[] }[];
  };
  assert.deepEqual(kinds.find(({ name }) => name === "example")?.required, ["url"]);

  // In a second account of the same person, which is added.
  const wrong = await call("/api/channels", { channel: "example", account: "added", settings: {}, secrets: {} });
  assert.equal(wrong.status, 400);
  const account = { channel: "example", account: "added", settings: { url, owners: ["ann"] } };
  const added = await call("/api/channels", { ...account, secrets: { secret_env: "other" }, unverified: true });
  assert.equal(added.status, 200, await added.text());

  assert.equal((await say("main", "wrong", "hello")).status, 401);
  assert.equal((await say("main", "s3cret", "hello")).status, 200);
  assert.equal((await say("added", "other", "again")).status, 200);
  await arrived.promise;
  assert.deepEqual(received.map(({ to, text: answer }) => `${to}: ${answer}`).toSorted(), [
    "ann: You said: again",
    "ann: You said: hello",
  ]);
});

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}
