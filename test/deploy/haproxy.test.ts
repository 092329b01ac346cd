// The balancer of docker-compose.yml, as its configuration says, before two HTTP servers that end connections as a killed gateway does.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, before, beforeEach, describe, test } from "node:test";
import { debianBinary, freePort, sharedCacheDir } from "@parley/local";
import { Cleanup, pollUntil, temporaryFolder } from "@parley/testing";
import { read } from "./support/repository.ts";

const haproxy = await debianBinary("haproxy", "haproxy", sharedCacheDir).then(
  ({ path }) => path,
  () => undefined,
);

describe("HAProxy", { skip: haproxy === undefined ? "HAProxy is not available" : false }, () => {
  const cleanup = new Cleanup();
  /** The bodies that have arrived, in order. */
  const arrived: string[] = [];
  let url = "";
  let healthUrl = "";
  let isReady = true;
  const stopGateways: (() => Promise<void>)[] = [];

  /** The first request dies with its gateway; later ones are answered by the other one. */
  const gateway = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const isCheck = request.url === "/readyz";
    if (!isCheck) arrived.push(await text(request));
    if (!isCheck && arrived.length === 1 && isReady) request.socket.destroy();
    // HAProxy ends its client's connection when it finds that a kept connection to a server has ended.
    else response.writeHead(isCheck && !isReady ? 503 : 200, { connection: "close" }).end("answer");
  };

  before(async () => {
    const ports = await Promise.all([startGateway(), startGateway()]);
    const [port, healthPort] = [await freePort(), await freePort()];
    const servers = ports.map((each) => `server gateway-${each} 127.0.0.1:${each} check port ${each}`);
    const config = read("infra/docker/haproxy.cfg")
      .replace("bind :8787", `bind 127.0.0.1:${port}`)
      .replace("bind :8404", `bind 127.0.0.1:${healthPort}`)
      // There is no DNS of Docker here.
      .replace("default-server resolvers docker init-addr none", "")
      .replace(" resolvers docker init-addr none", "")
      .replace(/server-template .*/, servers.join("\n  "))
      .replace(/server-template .*/, servers.map((each) => each.replace(/ check .*/, "")).join("\n  "));
    const path = join(await temporaryFolder(cleanup), "haproxy.cfg");
    writeFileSync(path, config);
    const running = spawn(haproxy ?? "", ["-db", "-f", path], { stdio: ["ignore", "ignore", "inherit"] });
    cleanup.add(async () => {
      if (running.exitCode !== null) return;
      running.kill("SIGKILL");
      await once(running, "exit");
    });
    healthUrl = `http://127.0.0.1:${healthPort}/healthz`;
    await pollUntil(async () => {
      assert.equal(running.exitCode, null, "HAProxy has ended");
      return (await healthStatus()) === 200;
    }, "a gateway that is ready");
    url = `http://127.0.0.1:${port}/v1/chat/completions`;
  });
  after(() => cleanup[Symbol.asyncDispose]());
  beforeEach(() => void arrived.splice(0));

  const healthStatus = () =>
    fetch(healthUrl).then(
      ({ status }) => status,
      () => null,
    );

  async function startGateway(): Promise<number> {
    const server = createServer((request, response) => void gateway(request, response)).listen(0, "127.0.0.1");
    await once(server, "listening");
    const stop = async () => {
      server.closeAllConnections();
      server.close();
    };
    cleanup.add(stop);
    stopGateways.push(stop);
    return (server.address() as AddressInfo).port;
  }

  test("sends a request with an idempotency key to another gateway when the first one dies", async () => {
    const response = await fetch(url, { method: "POST", body: "hello", headers: { "idempotency-key": "one" } });
    assert.equal(await response.text(), "answer");
    assert.deepEqual(arrived, ["hello", "hello"]);
  });

  test("sends a request without a key only once", async () => {
    const response = await fetch(url, { method: "POST", body: "hello" });
    assert.equal(response.status, 502);
    assert.deepEqual(arrived, ["hello"]);
  });

  test("sends a request that only reads to another gateway", async () => {
    assert.equal(await (await fetch(url)).text(), "answer");
    assert.equal(arrived.length, 2);
  });

  test("sends requests to gateways that are not ready when none is, and tells clients when to repeat them", async () => {
    isReady = false;
    await pollUntil(async () => (await healthStatus()) === 503, "no gateway that is ready");
    const held = await fetch(url, { method: "POST", body: "hello" });
    assert.equal(await held.text(), "answer");
    for (const stop of stopGateways) await stop();
    const refused = await fetch(url, { method: "POST", body: "hello" });
    assert.equal(refused.status, 503);
    assert.equal(refused.headers.get("retry-after"), "2");
    assert.match(await refused.text(), /"code":"unavailable"/);
  });
});
