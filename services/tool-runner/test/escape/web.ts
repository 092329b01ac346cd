// Attempts to make web_fetch request forbidden addresses. Counted are sockets of this process and connections to local servers.
import assert from "node:assert/strict";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { createServer } from "node:http";
import { systemResolver } from "../../src/web/fetch-page.ts";
import type { Address, Resolver } from "../../src/network/target.ts";
import { webFetchTool } from "../../src/tools/web-fetch.ts";
import { makeWorkspaceFixture } from "../support/workspace-fixture.ts";
import type { Cleanup } from "@parley/testing";
import { attempt } from "./ledger.ts";
import { assertReachable, listen, type Listener } from "./listeners.ts";

interface Fetch {
  resolve?: Resolver;
  ports?: number[];
  allowPrivate?: string[];
}

/** Fetches a page and returns how many connections this process opened meanwhile. */
async function connectionsOf(url: string, { resolve = systemResolver, ports = [80, 443], allowPrivate = [] }: Fetch) {
  await using ground = await makeWorkspaceFixture();
  let opened = 0;
  const count = () => (opened += 1);
  subscribe("net.client.socket", count);
  try {
    const tool = webFetchTool({ allowPrivate, ports, maxBytes: 100_000, timeoutSeconds: 3, resolve });
    await ground.call(tool, { url });
    return opened;
  } finally {
    unsubscribe("net.client.socket", count);
  }
}

/** Loopback in all notations; `:0` is replaced by the port of a local server. */
const loopbacks = [
  "http://127.0.0.1:0/",
  "http://127.1:0/",
  "http://2130706433:0/",
  "http://0x7f000001:0/",
  "http://0x7f.0.0.0x1:0/",
  "http://0177.0.0.01:0/",
  "http://017700000001:0/",
  "http://127.0.0.1.:0/",
  "http://１２７.０.０.１:0/",
  "http://①②⑦.⓪.⓪.①:0/",
  "http://0:0/",
  "http://0.0.0.0:0/",
  "http://[::1]:0/",
  "http://[::]:0/",
  "http://[::ffff:127.0.0.1]:0/",
  "http://[::ffff:7f00:1]:0/",
  "http://[::127.0.0.1]:0/",
  "http://[64:ff9b::127.0.0.1]:0/",
  "http://[2002:7f00:1::]:0/",
  "http://localhost:0/",
  "http://LOCALHOST.:0/",
  "http://user:password@127.0.0.1:0/",
  "http://example.org@127.0.0.1:0/",
  "http://example.org:80%40127.0.0.1:0/",
  "http://127.0.0.1:0\\@example.org/",
  "http://127.0.0.1:0#@example.org/",
  "http://%31%32%37.0.0.1:0/",
  "http:127.0.0.1:0/",
  " \thttp://127.0.0.1:0/",
  "ht\ntp://127.0.0.1:0/",
];

const elsewhere = [
  "http://169.254.169.254/latest/meta-data/",
  "http://[fd00:ec2::254]/latest/meta-data/",
  "http://100.100.100.200/latest/meta-data/",
  "http://168.63.129.16/metadata/",
  "http://192.0.0.192/opc/v2/",
  "http://10.0.0.1/",
  "http://172.16.0.1/",
  "http://192.168.0.1/",
  "http://100.64.0.1/",
  "http://198.18.0.1/",
  "http://[fe80::1]/",
  "http://[fc00::1]/",
  "http://[fec0::1]/",
  "http://[ff02::1]/",
  "http://[2001:0:7f00:1::]/",
  "http://8.8.8.8:22/",
  "http://8.8.8.8:6379/",
  "gopher://127.0.0.1:6379/_INFO",
  "file:///etc/passwd",
  "unix:/var/run/docker.sock",
];

export function webAttempts(cleanup: Cleanup): void {
  let servers: Promise<Listener[]> | undefined;
  /** Servers on the same port of 127.0.0.1 and, if available, ::1. */
  const loopback = () =>
    (servers ??= (async () => {
      const four = await listen(cleanup, { host: "127.0.0.1", port: 0 });
      const six = await listen(cleanup, { host: "::1", port: four.port, ipv6Only: true }).catch(() => undefined);
      await assertReachable({ host: "127.0.0.1", port: four.port });
      return six === undefined ? [four] : [four, six];
    })());
  const nobodyComes = async (work: (port: number) => Promise<void>) => {
    const listeners = await loopback();
    const before = listeners.map(({ visitors }) => visitors);
    await work(listeners[0]?.port ?? 0);
    assert.deepEqual(
      listeners.map(({ visitors }) => visitors),
      before,
    );
  };

  attempt(
    "a loopback page is fetched when the operator allows it: proves that the counters count",
    "the tools",
    async () => {
      const [server] = await loopback();
      const before = server?.visitors ?? 0;
      const opened = await connectionsOf(`http://127.0.0.1:${server?.port}/`, { allowPrivate: ["127.0.0.1"] });
      assert.equal(opened, 1);
      assert.equal(server?.visitors, before + 1);
    },
  );

  for (const url of loopbacks) {
    attempt(`web_fetch requests ${JSON.stringify(url)}`, "the tools", () =>
      nobodyComes(async (port) => {
        const asked = url.replace(":0", `:${port}`);
        // Other names must not reach the internet either: they resolve to loopback here.
        const resolve: Resolver = async (name) =>
          /^localhost\.?$/i.test(name) ? systemResolver("localhost") : [{ address: "127.0.0.1", family: 4 }];
        assert.equal(await connectionsOf(asked, { ports: [80, 443, port], resolve }), 0);
      }),
    );
  }

  for (const url of elsewhere) {
    attempt(`web_fetch requests ${url}`, "the tools", async () => {
      assert.equal(await connectionsOf(url, {}), 0);
    });
  }

  for (const [what, answers] of [
    ["first public, then private", [["93.184.216.34"], ["127.0.0.1"]]],
    ["public and private at once", [["93.184.216.34", "127.0.0.1"]]],
    ["public and IPv6 loopback at once", [["93.184.216.34", "::1"]]],
    ["public and mapped at once", [["93.184.216.34", "::ffff:127.0.0.1"]]],
    ["the metadata service", [["169.254.169.254"]]],
  ] as const) {
    attempt(`a name server returns ${what}`, "the tools", () =>
      nobodyComes(async (port) => {
        let asked = 0;
        const resolve: Resolver = async () => {
          const now = answers[Math.min(asked++, answers.length - 1)] ?? [];
          return now.map((address): Address => ({ address, family: address.includes(":") ? 6 : 4 }));
        };
        const opened = await connectionsOf(`http://rebind.test:${port}/`, { ports: [port], resolve });
        // Only the first answer was checked: it may be connected to, and the name is not resolved again.
        assert.equal(asked, 1);
        assert.ok(opened <= (what === "first public, then private" ? 1 : 0), `${opened} connections`);
      }),
    );
  }

  for (const status of [301, 302, 303, 307, 308]) {
    attempt(`a public page redirects to loopback with ${status}`, "the tools", () =>
      nobodyComes(async (port) => {
        for (const to of [
          `http://127.0.0.1:${port}/`,
          `http://[::1]:${port}/`,
          `http://2130706433:${port}/`,
          `http://x:y@site.test:${port}/`,
          `//127.0.0.1:${port}/`,
        ]) {
          await using site = await leadingTo(status, to);
          const allowPrivate = ["site.test"];
          const resolve: Resolver = async () => [{ address: "127.0.0.1", family: 4 }];
          assert.equal(await connectionsOf(`http://site.test:${site.port}/`, { allowPrivate, resolve }), 1, to);
          assert.equal(site.visits(), 1);
        }
      }),
    );
  }

  attempt("the environment names a proxy", "the tools", () =>
    nobodyComes(async (port) => {
      const names = ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "NODE_USE_ENV_PROXY"];
      const before = names.map((name) => process.env[name]);
      for (const name of names) process.env[name] = name === "NODE_USE_ENV_PROXY" ? "1" : `http://127.0.0.1:${port}`;
      try {
        await using site = await leadingTo(200, "");
        const resolve: Resolver = async () => [{ address: "127.0.0.1", family: 4 }];
        await connectionsOf(`http://site.test:${site.port}/`, { allowPrivate: ["site.test"], resolve });
        assert.equal(site.visits(), 1);
      } finally {
        for (const [index, name] of names.entries()) {
          const value = before[index];
          if (value === undefined) delete process.env[name];
          else process.env[name] = value;
        }
      }
    }),
  );
}

/** A site that the operator allows, and that redirects elsewhere. */
async function leadingTo(status: number, location: string) {
  let visits = 0;
  const server = createServer((_, response) => {
    visits += 1;
    response.writeHead(status, location === "" ? {} : { location }).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const bound = server.address();
  assert.ok(bound !== null && typeof bound === "object");
  return {
    port: bound.port,
    visits: () => visits,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
