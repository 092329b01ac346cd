// The hosts that commands may reach: the meaning of the list, where the proxy connects, and where it refuses.
import assert from "node:assert/strict";
import { createServer, request as httpRequest, type IncomingMessage } from "node:http";
import { connect, createServer as createTcpServer, type Server } from "node:net";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { freePort } from "@parley/local";
import { Cleanup, temporaryFolder } from "@parley/testing";
import { pollUntil } from "@parley/testing/until";
import fc from "fast-check";
import {
  destinationRule,
  findRoute,
  hasAllowedHosts,
  parseDestination,
  type EgressSettings,
} from "../src/sandbox/egress/hosts.ts";
import { openEgressProxy, type EgressEvent, type EgressProxy } from "../src/sandbox/egress/proxy.ts";
import type { Resolver } from "../src/network/target.ts";

const list = (hosts: string[], privateHosts: string[] = []): EgressSettings => ({ hosts, privateHosts });
const loopback: Resolver = async () => [{ address: "127.0.0.1", family: 4 }];
const permission = (authority: string, settings: EgressSettings) => {
  const wanted = parseDestination(authority);
  assert.ok(wanted !== undefined, authority);
  return destinationRule(wanted, settings);
};

test("allows a host on 80 and 443, a host:port only there, and a wildcard below it", () => {
  const settings = list(["npm.test", "*.example.com", "git.test:8443", "*.cdn.test:80"], ["10.0.0.5:3000", "[::1]:81"]);
  const expected = {
    "npm.test:443": "public",
    "NPM.test.:80": "public",
    "npm.test:8080": "refused",
    "evil-npm.test:443": "refused",
    "npm.test.evil.test:443": "refused",
    "example.com:443": "refused",
    "a.b.example.com:443": "public",
    "notexample.com:443": "refused",
    "git.test:8443": "public",
    "git.test:443": "refused",
    "x.cdn.test:80": "public",
    "x.cdn.test:443": "refused",
    "10.0.0.5:3000": "private",
    "167772165:3000": "private",
    "10.0.0.5:80": "refused",
    "[::1]:81": "private",
    "[0:0:0:0:0:0:0:1]:81": "private",
  };
  for (const [authority, wanted] of Object.entries(expected)) {
    assert.equal(permission(authority, settings), wanted, authority);
  }
  assert.equal(hasAllowedHosts(list([])), false);
});

test("rejects malformed destinations", () => {
  for (const bad of [
    "",
    ":443",
    "host",
    "user@host:443",
    "host:0",
    "host:70000",
    "host:443/x",
    "a b:80",
    "host:80?x",
    "host:80#",
  ]) {
    assert.equal(parseDestination(bad), undefined, bad);
  }
});

test("matches only subdomains with a wildcard", () => {
  const name = fc.stringMatching(/^[a-z0-9]{1,8}(\.[a-z0-9]{1,8}){0,3}$/);
  fc.assert(
    fc.property(name, (host) => {
      const wanted = { host, port: 443 };
      assert.equal(destinationRule(wanted, list(["*.a.test"])), host.endsWith(".a.test") ? "public" : "refused");
    }),
  );
});

test("refuses non-public addresses of a listed name in every notation", async () => {
  const bad = [
    "127.0.0.1",
    "10.1.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "::1",
    "fd00::1",
    "::ffff:10.0.0.1",
    "168.63.129.16",
  ];
  for (const address of bad) {
    const resolve: Resolver = async () => [
      { address: "93.184.216.34", family: 4 },
      { address, family: address.includes(":") ? 6 : 4 },
    ];
    const route = await findRoute({ host: "npm.test", port: 443 }, list(["npm.test"]), resolve);
    assert.ok("refused" in route, address);
    assert.match(route.refused, /not public/);
  }
});

test("allows a private address for a private host, but never a metadata service", async () => {
  const at = (address: string) =>
    findRoute({ host: "git.lan", port: 443 }, list([], ["git.lan"]), async () => [{ address, family: 4 }]);
  assert.deepEqual(await at("10.0.0.1"), { to: { address: "10.0.0.1", family: 4 } });
  assert.ok("refused" in (await at("169.254.169.254")));
  assert.ok("refused" in (await at("168.63.129.16")));
});

interface Out extends AsyncDisposable {
  path: string;
  proxy: EgressProxy;
  events: EgressEvent[];
  port: number;
  asked: IncomingMessage[];
  get(url: string, headers?: Record<string, string>, body?: string): Promise<{ status: number; body: string }>;
  /** The text received through a tunnel, or the error response of the proxy. */
  tunnel(to: string): Promise<string>;
}

async function openOut(settings: (port: number) => EgressSettings, resolve: Resolver = loopback): Promise<Out> {
  const cleanup = new Cleanup();
  const asked: IncomingMessage[] = [];
  const site = createServer((request, response) => {
    asked.push(request);
    void text(request).then((body) => response.end(`hello ${body}`));
  });
  const port = await listening(site, cleanup);
  const path = join(await temporaryFolder(cleanup), "proxy.sock");
  const events: EgressEvent[] = [];
  const onEvent = (event: EgressEvent) => events.push(event);
  const proxy = await openEgressProxy({ settings: settings(port), resolve, path, onEvent });
  return {
    path,
    proxy,
    events,
    port,
    asked,
    get: (url, headers = {}, body = "") =>
      new Promise((found, reject) => {
        const method = body === "" ? "GET" : "POST";
        const sent = httpRequest({ socketPath: path, path: url, method, headers, agent: false }, (response) => {
          void text(response).then((answer) => found({ status: response.statusCode ?? 0, body: answer }), reject);
        });
        sent.once("error", reject).end(body);
      }),
    tunnel: async (to) => {
      const socket = connect({ path });
      socket.write(
        `CONNECT ${to} HTTP/1.1\r\nHost: ${to}\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`,
      );
      return text(socket);
    },
    [Symbol.asyncDispose]: async () => {
      await proxy.close();
      await cleanup[Symbol.asyncDispose]();
    },
  };
}

async function listening(server: Server, cleanup: Cleanup): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  cleanup.add(() => new Promise((resolve) => server.close(resolve)));
  const bound = server.address();
  assert.ok(bound !== null && typeof bound === "object");
  return bound.port;
}

test("carries a tunnel to a listed host in both directions and reports its bytes", async () => {
  await using out = await openOut((port) => list([], [`site.test:${port}`]));
  const answer = await out.tunnel(`site.test:${out.port}`);
  assert.match(answer, /^HTTP\/1.1 200 .*\r\n\r\nHTTP\/1.1 200 OK/);
  await out.proxy.close();
  const [event] = out.events;
  assert.equal(event?.to, `site.test:${out.port}`);
  assert.equal(event.refused, undefined);
  assert.ok(event.sentBytes > 30 && event.receivedBytes > 50);
});

test("requests plain http with the checked host when the Host header differs", async () => {
  await using out = await openOut((port) => list([], [`site.test:${port}`]));
  const url = `http://site.test:${out.port}/a?b=c`;
  const answer = await out.get(
    url,
    { host: "metadata.internal", "proxy-authorization": "secret", "x-mine": "1" },
    "body",
  );
  assert.deepEqual(answer, { status: 200, body: "hello body" });
  const [asked] = out.asked;
  assert.equal(asked?.url, "/a?b=c");
  assert.equal(asked.headers.host, `site.test:${out.port}`);
  assert.equal(asked.headers["proxy-authorization"], undefined);
  assert.equal(asked.headers["x-mine"], "1");
});

test("returns 403 naming the setting for an unlisted host, and connects nowhere", async () => {
  let lookups = 0;
  const counting: Resolver = async (name) => ((lookups += 1), loopback(name));
  await using out = await openOut((port) => list([`site.test:${port}`]), counting);
  const answer = await out.get(`http://other.test:${out.port}/`);
  assert.equal(answer.status, 403);
  assert.match(answer.body, /other\.test:\d+ is not in allow_hosts under \[tools\.exec\]/);
  assert.match(await out.tunnel("other.test:443"), /^HTTP\/1.1 403 Forbidden\r\n[^]*allow_hosts under \[tools\.exec\]/);
  assert.equal(lookups, 0, "the name is not resolved: DNS lookups can leak data");
  assert.equal(out.proxy.refused.size, 2);
  assert.deepEqual(out.asked, []);
});

test("refuses a listed name that resolves to this machine, and resolves once per connection", async () => {
  let lookups = 0;
  const rebinding: Resolver = async () => [{ address: ++lookups === 1 ? "192.0.2.1" : "127.0.0.1", family: 4 }];
  await using out = await openOut((port) => list([`site.test:${port}`]), rebinding);
  // The first answer is not a public address either: 192.0.2.0/24 is reserved for documentation.
  for (const expected of [1, 2]) {
    assert.match(await out.tunnel(`site.test:${out.port}`), /^HTTP\/1.1 403/);
    assert.equal(lookups, expected);
  }
  assert.deepEqual(out.asked, []);
});

test("returns 502 with the reason for an unknown or unreachable host", async () => {
  const gone: Resolver = () => Promise.reject(new Error("ENOTFOUND"));
  await using lost = await openOut((port) => list([`site.test:${port}`]), gone);
  assert.match((await lost.get(`http://site.test:${lost.port}/`)).body, /cannot be found/);
  const port = await freePort();
  await using deaf = await openOut(() => list([], [`site.test:${port}`]));
  const answer = await deaf.get(`http://site.test:${port}/`);
  assert.equal(answer.status, 502);
  assert.match(answer.body, /cannot be reached: .*ECONNREFUSED/);
});

test("returns 502 when the status of a response cannot be passed on", async () => {
  await using cleanup = new Cleanup();
  const site = createTcpServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", () => socket.end("HTTP/1.1 099 odd\r\ncontent-length: 2\r\n\r\nhi"));
  });
  const port = await listening(site, cleanup);
  await using out = await openOut(() => list([], [`site.test:${port}`]));
  const answer = await out.get(`http://site.test:${port}/`);
  assert.equal(answer.status, 502);
  assert.match(answer.body, /sent an invalid response: .*99/);
});

test("returns 400 for requests that are not for a proxy", async () => {
  await using out = await openOut((port) => list([], [`site.test:${port}`]));
  for (const url of ["/", "ftp://site.test/", `http://me:you@site.test:${out.port}/`]) {
    assert.equal((await out.get(url)).status, 400, url);
  }
  assert.match(await out.tunnel("site.test"), /^HTTP\/1.1 400/);
  assert.deepEqual(out.asked, []);
});

test("closes open tunnels and removes the socket on close", async () => {
  await using out = await openOut((port) => list([], [`site.test:${port}`]));
  const socket = connect({ path: out.path });
  socket.write(`CONNECT site.test:${out.port} HTTP/1.1\r\n\r\n`);
  await new Promise((resolve) => socket.once("data", resolve));
  const closed = new Promise((resolve) => socket.once("close", resolve));
  await out.proxy.close();
  await closed;
  assert.equal(existsSync(out.path), false);
});

test("closes a connection that opens after close when its name was still being resolved", async () => {
  const asked = Promise.withResolvers<void>();
  const resolved = Promise.withResolvers<void>();
  const slow: Resolver = async (name) => {
    asked.resolve();
    await resolved.promise;
    return loopback(name);
  };
  await using out = await openOut((port) => list([], [`site.test:${port}`]), slow);
  const cutOff = assert.rejects(out.get(`http://site.test:${out.port}/`));
  await asked.promise;
  await out.proxy.close();
  await cutOff;
  resolved.resolve();
  await pollUntil(() => out.events.length === 1, "the end of the connection");
  assert.deepEqual(out.asked, []);
});
