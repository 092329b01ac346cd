// Attempts of commands with one allowed host to reach other hosts. The allowed host is a local server listed as private; the other
// servers count their connections.
import assert from "node:assert/strict";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { createServer, type IncomingMessage } from "node:http";
import { totalmem } from "node:os";
import type { Cleanup } from "@parley/testing";
import { openExecutor } from "../../src/sandbox/executor.ts";
import { defaultExecLimits } from "../../src/sandbox/limits.ts";
import { Processes } from "../../src/processes/processes.ts";
import { execTool } from "../../src/tools/exec.ts";
import type { Resolver } from "../../src/network/target.ts";
import { bwrap } from "../support/commands.ts";
import { makeWorkspaceFixture } from "../support/workspace-fixture.ts";
import { attempt } from "./ledger.ts";
import { assertReachable, listen } from "./listeners.ts";

/** What one command printed, and how many connections this process opened for it. */
interface Raid {
  found: string;
  opened: number;
}

const limits = defaultExecLimits(totalmem());

async function raid(command: string, hosts: { open?: string[]; own?: string[]; resolve?: Resolver }): Promise<Raid> {
  await using ground = await makeWorkspaceFixture();
  const executor = await openExecutor({
    workspace: ground.workspace,
    setting: "bubblewrap",
    bwrap: bwrap ?? "bwrap",
    searchPath: "/usr/bin",
    limits,
    egress: {
      settings: { hosts: hosts.open ?? [], privateHosts: hosts.own ?? [] },
      resolve: hosts.resolve ?? (async () => [{ address: "127.0.0.1", family: 4 }]),
      onEvent: () => undefined,
    },
  });
  const times = { timeoutSeconds: 250, backgroundAfterSeconds: 0, backgroundTimeoutSeconds: 250 };
  const tool = execTool({
    executor,
    limits,
    processes: new Processes("here", { maxPerSession: 1, maxInAll: 1 }),
    times,
  });
  let opened = 0;
  const count = () => (opened += 1);
  subscribe("net.client.socket", count);
  try {
    const { content } = await ground.call(tool, { command: `${command}\necho tried to the end` });
    assert.match(content, /^tried to the end$/m);
    return { found: content, opened };
  } finally {
    unsubscribe("net.client.socket", count);
  }
}

/** Sends lines to the proxy and prints the first line of the response. */
const ask = (...lines: string[]) =>
  `exec 3<>/dev/tcp/127.0.0.1/3128 && printf '${lines.join("\\r\\n")}\\r\\n\\r\\n' >&3; head -n 1 <&3; exec 3>&-`;
const tunnel = (to: string) => ask(`CONNECT ${to} HTTP/1.1`, `Host: ${to}`);
const plain = (url: string, host: string) => ask(`GET ${url} HTTP/1.1`, `Host: ${host}`, "Connection: close");

/** Loopback and cloud metadata addresses in all notations; `:0` is replaced by a port. */
const forms = [
  "127.0.0.1:0",
  "127.1:0",
  "2130706433:0",
  "0x7f000001:0",
  "0177.0.0.1:0",
  "0.0.0.0:0",
  "[::1]:0",
  "[::ffff:127.0.0.1]:0",
  "[::ffff:7f00:1]:0",
  "[64:ff9b::7f00:1]:0",
  "localhost:0",
  "site.test@127.0.0.1:0",
  "169.254.169.254:80",
  "2852039166:80",
  "[fd00:ec2::254]:80",
  "168.63.129.16:80",
  "metadata.google.internal:80",
];

export function egressAttempts(cleanup: Cleanup): void {
  attempt("a command with an allowed host connects to it without the proxy", "bubblewrap", async () => {
    const server = await listen(cleanup, { host: "127.0.0.1", port: 0 });
    await assertReachable({ host: "127.0.0.1", port: server.port });
    const before = server.visitors;
    const { found } = await raid(
      `exec 3<>/dev/tcp/127.0.0.1/${server.port} && echo CONNECTED
curl -sS --max-time 2 --noproxy '*' http://127.0.0.1:${server.port}/ && echo CONNECTED
grep -v -e '|' -e ' lo:' /proc/net/dev && echo CONNECTED`,
      { own: [`127.0.0.1:${server.port}`] },
    );
    assert.doesNotMatch(found, /CONNECTED/);
    assert.equal(server.visitors, before);
  });

  attempt("a command with an allowed host queries name servers itself", "bubblewrap", async () => {
    const { found } = await raid(
      "getent hosts example.com && echo CONNECTED; (exec 3<>/dev/udp/192.0.2.53/53 && echo out >&3) && echo CONNECTED",
      { own: ["site.test"] },
    );
    assert.doesNotMatch(found, /CONNECTED/);
  });

  attempt(
    "a command requests this machine and metadata services from the proxy, in every notation",
    "bubblewrap",
    async () => {
      const server = await listen(cleanup, { host: "127.0.0.1", port: 0 });
      const asked = forms.map((form) => form.replace(/:0$/, `:${server.port}`));
      const { found, opened } = await raid(
        asked.flatMap((form) => [tunnel(form), plain(`http://${form}/`, "site.test")]).join("\n"),
        { open: ["site.test", "*.test"], own: ["site.test:1"] },
      );
      assert.equal(found.match(/^HTTP\/1\.1 (403|400) /gm)?.length, 2 * asked.length);
      assert.equal(opened, 0);
      assert.equal(server.visitors, 0);
    },
  );

  attempt("a listed public name resolves to a private address", "bubblewrap", async () => {
    const server = await listen(cleanup, { host: "127.0.0.1", port: 0 });
    const { found, opened } = await raid(
      [tunnel(`site.test:${server.port}`), plain(`http://site.test:${server.port}/`, "site.test")].join("\n"),
      { open: [`site.test:${server.port}`, `*.test:${server.port}`] },
    );
    assert.equal(found.match(/^HTTP\/1\.1 403 /gm)?.length, 2);
    assert.equal(opened, 0);
    assert.equal(server.visitors, 0);
  });

  attempt("a listed name changes to this machine after it was checked", "bubblewrap", async () => {
    const server = await listen(cleanup, { host: "127.0.0.1", port: 0 });
    let lookups = 0;
    const { found, opened } = await raid([1, 2, 3].map(() => tunnel(`site.test:${server.port}`)).join("\n"), {
      open: [`site.test:${server.port}`],
      // First an address without a host (RFC 9637 reserves it for documentation, so it is refused as well), then this machine.
      resolve: async () => [lookups++ === 0 ? { address: "3fff::1", family: 6 } : { address: "127.0.0.1", family: 4 }],
    });
    assert.doesNotMatch(found, / 200 /);
    assert.equal(lookups, 3, "once per connection");
    assert.ok(opened <= 1, "at most to the first address");
    assert.equal(server.visitors, 0);
  });

  attempt(
    "a request for a listed host has another Host header, or smuggles a second request",
    "bubblewrap",
    async () => {
      const asked: IncomingMessage[] = [];
      const site = createServer((request, response) => {
        asked.push(request);
        response.end("listed");
      });
      await new Promise<void>((resolve) => site.listen(0, "127.0.0.1", resolve));
      cleanup.add(() => new Promise((resolve) => site.close(resolve)));
      const bound = site.address();
      assert.ok(bound !== null && typeof bound === "object");
      const other = await listen(cleanup, { host: "127.0.0.1", port: 0 });
      const listed = `site.test:${bound.port}`;
      await raid(
        [
          plain(`http://${listed}/`, "admin.internal"),
          ask(
            `GET http://${listed}/ HTTP/1.1`,
            `Host: ${listed}`,
            "",
            `GET http://127.0.0.1:${other.port}/ HTTP/1.1`,
            "Host: 127.0.0.1",
            "Connection: close",
          ),
          ask(`GET http://${listed}/ HTTP/1.1`, "Content-Length: 0", "Transfer-Encoding: chunked", "Host: x", "", "0"),
        ].join("\n"),
        { own: [listed] },
      );
      assert.ok(asked.length >= 2, "the listed host was reached");
      for (const { headers } of asked) assert.equal(headers.host, listed);
      assert.equal(other.visitors, 0);
    },
  );

  attempt("a command uses the proxy's socket directly, and searches for other sockets", "bubblewrap", async () => {
    const server = await listen(cleanup, { host: "127.0.0.1", port: 0 });
    const { found, opened } = await raid(
      `perl -MSocket -e 'socket(my $s, AF_UNIX, SOCK_STREAM, 0); connect($s, pack_sockaddr_un("/run/parley/proxy.sock")) and print "THERE\\n"; syswrite($s, "CONNECT 127.0.0.1:${server.port} HTTP/1.1\\r\\n\\r\\n"); print scalar <$s>'
rm -f /run/parley/proxy.sock /run/parley/node && echo REMOVED
find / \\( -path /proc -o -path /sys -o -path /usr \\) -prune -o -name '*.sock' -print 2>/dev/null | grep -v '^/run/parley/proxy.sock$' && echo OTHERS`,
      { own: ["site.test"] },
    );
    assert.match(found, /THERE\nHTTP\/1\.1 403 /);
    assert.doesNotMatch(found, /REMOVED|OTHERS/);
    assert.equal(opened, 0);
  });
}
