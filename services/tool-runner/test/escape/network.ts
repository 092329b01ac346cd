// Attempts of commands to reach anything over a network or a socket of this machine.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { getServers } from "node:dns";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { startTestRedis, temporaryFolder, type Cleanup } from "@parley/testing";
import { attempt } from "./ledger.ts";
import { assertReachable, listen, listenForDatagrams, type Listener } from "./listeners.ts";
import type { EscapeFixture } from "./fixture.ts";

const tcp = (host: string, port: number) => `exec 3<>/dev/tcp/${host}/${port} && echo CONNECTED`;
const perlUnix = (address: string) =>
  `perl -MSocket -e 'socket(my $s, AF_UNIX, SOCK_STREAM, 0); connect($s, pack_sockaddr_un("${address}")) and print "CONNECTED"'`;

export function networkAttempts(fixture: () => EscapeFixture, cleanup: Cleanup): void {
  /** Asserts that the command opens no connection to `listener`. */
  const counted = async (listener: Listener, command: string) => {
    const before = listener.visitors;
    assert.doesNotMatch(await fixture().raid(command), /CONNECTED/);
    assert.equal(listener.visitors, before);
  };

  for (const host of ["127.0.0.1", "::1"]) {
    attempt(`a command connects to a service on ${host}`, "bubblewrap", async () => {
      const server = await listen(cleanup, { host, port: 0 });
      await assertReachable({ host, port: server.port });
      await counted(server, tcp(host, server.port));
    });
  }

  attempt("a command connects to this machine's own address", "bubblewrap", async (t) => {
    const own = Object.values(networkInterfaces())
      .flatMap((each) => each ?? [])
      .find(({ internal, family }) => !internal && family === "IPv4");
    if (own === undefined) t.diagnostic("this machine has only loopback addresses; 127.0.0.2 is used instead");
    const host = own?.address ?? "127.0.0.2";
    const server = await listen(cleanup, { host, port: 0 });
    await assertReachable({ host, port: server.port });
    await counted(server, tcp(host, server.port));
  });

  attempt("a command connects to NATS", "bubblewrap", async () => {
    const { hostname, port } = new URL(fixture().runnerFixture.stack.nats.url);
    await assertReachable({ host: hostname, port: Number(port) });
    assert.doesNotMatch(
      await fixture().raid(`${tcp(hostname, Number(port))}; timeout 1 head -c 4 <&3`),
      /CONNECTED|INFO/,
    );
  });

  attempt("a command connects to PostgreSQL", "bubblewrap", async () => {
    const { hostname, port } = new URL(fixture().runnerFixture.stack.postgres.ownerUrl);
    await assertReachable({ host: hostname, port: Number(port) });
    assert.doesNotMatch(await fixture().raid(tcp(hostname, Number(port))), /CONNECTED/);
  });

  attempt("a command connects to Redis", "bubblewrap", async () => {
    const { hostname, port } = new URL((await startTestRedis(cleanup)).url);
    await assertReachable({ host: hostname, port: Number(port) });
    const found = await fixture().raid(
      `${tcp(hostname, Number(port))}; printf 'PING\\r\\n' >&3; timeout 1 head -c 5 <&3`,
    );
    assert.doesNotMatch(found, /CONNECTED|PONG|NOAUTH/);
  });

  attempt("a command sends datagrams to a service on loopback", "bubblewrap", async () => {
    const server = await listenForDatagrams(cleanup);
    await counted(server, `for i in 1 2 3; do echo out > /dev/udp/127.0.0.1/${server.port}; done`);
  });

  attempt("a command resolves a name and queries the machine's name servers itself", "bubblewrap", async () => {
    const servers = getServers().map((each) => each.replace(/:\d+$/, ""));
    const asks = servers.map((server) => `(exec 4<>/dev/tcp/${server}/53) && echo CONNECTED`);
    const found = await fixture().raid(["getent hosts example.com && echo CONNECTED", ...asks].join("\n"));
    assert.doesNotMatch(found, /CONNECTED/);
  });

  attempt("a command connects to a Unix socket of the machine, like Docker's", "bubblewrap", async () => {
    const path = join(await temporaryFolder(cleanup), "docker.sock");
    const server = await listen(cleanup, { path });
    await assertReachable({ path });
    const { visitors } = server;
    assert.equal(visitors, 1);
    await counted(
      server,
      `${perlUnix(path)}; ls /run/docker.sock /var/run/docker.sock /run/containerd && echo CONNECTED`,
    );
  });

  attempt("a command connects to an abstract Unix socket, which has no path to hide", "bubblewrap", async () => {
    const name = `parley-escape-${randomUUID()}`;
    const server = await listen(cleanup, { path: `\0${name}` });
    await assertReachable({ path: `\0${name}` });
    await counted(server, perlUnix(`\\0${name}`));
  });

  attempt("a command reaches a Unix socket through a link in the workspace", "bubblewrap", async () => {
    const path = join(await temporaryFolder(cleanup), "runner.sock");
    const server = await listen(cleanup, { path });
    await counted(server, `ln -sf ${path} way-out.sock; ${perlUnix("way-out.sock")}`);
  });

  for (const [name, family] of [
    ["VM sockets, which no network namespace covers", 40],
    ["packet sockets", 17],
    ["the kernel's cryptography sockets", 38],
  ] as const) {
    attempt(`a command opens ${name}`, "bubblewrap", async () => {
      const found = await fixture().raid(
        `perl -e 'socket(my $s, ${family}, 1, 0) || socket($s, ${family}, 5, 0) and print "OPENED"'`,
      );
      assert.doesNotMatch(found, /OPENED/);
    });
  }
}
