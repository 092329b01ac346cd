import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { after, test, type TestContext } from "node:test";

import { parseSettings } from "@parley/chassis";
import { readSecrets } from "@parley/local";
import { Cleanup, startScriptedModel, temporaryFolder } from "@parley/testing";

import { findServers, modelsAt } from "../src/onboard/model-test.ts";
import { type LocalServer, usualServers } from "../src/onboard/models.ts";
import { parleyOnTerminal } from "./support/parley.ts";

const cleanup = new Cleanup();
after(() => cleanup[Symbol.asyncDispose]());

const enter = "\r";
const down = "\u001B[B";

/** Makes a model server answer at one of the usual ports, the first that is free, until the test ends. */
async function serveAtUsualPort(url: string, context: TestContext): Promise<LocalServer> {
  for (const server of usualServers) {
    const sockets = new Set<Socket>();
    const listener = createServer((from) => {
      sockets.add(from);
      const to = connect(Number(new URL(url).port), "127.0.0.1");
      from.pipe(to).pipe(from);
      for (const [one, other] of [[from, to] as const, [to, from] as const]) one.on("error", () => other.destroy());
    });
    listener.listen(Number(new URL(server.baseUrl).port), "127.0.0.1");
    const listens = await Promise.race([
      once(listener, "listening").then(() => true),
      once(listener, "error").then(() => false),
    ]).catch(() => false);
    if (!listens) continue;
    context.after(() => {
      listener.close();
      // This process would find the server over a connection that is still open.
      for (const socket of sockets) socket.destroy();
    });
    return server;
  }
  throw new Error("no usual port is free");
}

// design: 004.13b
test("finds a model server at its usual port, offers its models, and uses the chosen one", async (context) => {
  const model = await startScriptedModel();
  cleanup.add(() => model.stop());
  const server = await serveAtUsualPort(model.url, context);
  const found = await findServers(usualServers);
  const position = found.findIndex(({ name }) => name === server.name);
  const [first = ""] = found[position]?.models ?? [];
  assert.notEqual(first, "");

  const home = await temporaryFolder(cleanup);
  const run = parleyOnTerminal(home, ["onboard"]);
  await run.says(new RegExp(`Found .*${server.title}`));
  await run.says(/Which model do you want to use/);
  // Claude and OpenAI stand before the servers of this machine.
  run.write(down.repeat(2 + position) + enter);
  await run.says(new RegExp(`${server.title} on this machine[\\s\\S]*Which model\\?`));
  run.write(enter);
  await run.says(new RegExp(`${first} \\(${server.title}\\) answers`));
  await run.says(/How should it work/);
  run.write(enter);
  await run.says(/Where do you want to write to Parley/);
  run.write(enter);
  await run.says(/Done/);
  assert.equal((await run.outcome()).code, 0);
  const { agent, llm } = parseSettings(readFileSync(join(home, "parley.toml"), "utf8"), "parley.toml");
  assert.equal(agent.model, server.name);
  assert.deepEqual([llm[server.name]?.base_url, llm[server.name]?.model], [server.baseUrl, first]);
});

test("offers the models of a server at another address, and asks for its key when it requires one", async () => {
  const model = await startScriptedModel();
  cleanup.add(() => model.stop());
  const baseUrl = `${model.url}/v1`;
  const [first = ""] = (await modelsAt({ name: "local", title: baseUrl, baseUrl }))?.models ?? [];
  const found = await findServers(usualServers);
  const home = await temporaryFolder(cleanup);
  const run = parleyOnTerminal(home, ["onboard"]);
  await run.says(/Which model do you want to use/);
  run.write(down.repeat(2 + found.length) + enter);
  await run.says(/Its address/);
  run.write(`${baseUrl}${enter}`);
  await run.says(/Which model\?/);
  model.failNext({ status: 401 });
  run.write(enter);
  await run.says(/The server requires a key \(401: scripted 401\)/);
  await run.says(/API key of the server/);
  run.write(`sk-of-the-server${enter}`);
  await run.says(/ answers/);
  await run.says(/How should it work/);
  run.write(enter);
  await run.says(/Where do you want to write to Parley/);
  run.write(enter);
  await run.says(/Done/);
  const { code, stdout } = await run.outcome();
  assert.equal(code, 0);
  assert.doesNotMatch(stdout, /sk-of-the-server/);
  const { llm } = parseSettings(readFileSync(join(home, "parley.toml"), "utf8"), "parley.toml");
  assert.deepEqual([llm["local"]?.model, llm["local"]?.key_env], [first, "PARLEY_AGENT_LOCAL_KEY"]);
  assert.equal(readSecrets(home)["PARLEY_AGENT_LOCAL_KEY"], "sk-of-the-server");
});

test("takes nothing for a model server that answers otherwise", async () => {
  const listener = createServer((socket) => socket.end("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nnope"));
  cleanup.add(async () => void listener.close());
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  const address = listener.address();
  assert.ok(typeof address === "object" && address !== null);
  const server = { name: "x", title: "x", baseUrl: `http://127.0.0.1:${address.port}/v1` };
  assert.equal(await modelsAt(server), null);
  assert.deepEqual(await findServers([server]), []);
});
