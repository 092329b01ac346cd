// What docs/deploy.md says about the containers of docker-compose.yml, tried from inside each of them: who reaches whom, what can be written,
// as whom they run, and what their environments contain.
import assert from "node:assert/strict";
import { createServer, type AddressInfo } from "node:net";
import { networkInterfaces } from "node:os";
import { services } from "@parley/contracts";
import { parseProbe, probeCommand } from "../cluster/reachability.ts";
import type { ComposeCluster, Container } from "./compose-cluster.ts";

/** The ports on which the programs of a container listen. */
const ports: Readonly<Record<string, readonly number[]>> = {
  store: [8080],
  "agent-core": [8080],
  "tool-runner": [8080],
  "channel-gateway": [8080, 8787],
  front: [8404, 8787],
  postgres: [5432],
  redis: [6379],
  nats: [4222, 8222],
};

/** All connections that are possible between containers, by service. Replicas of a service share its networks. */
const connections = [
  "store → nats:4222",
  "store → postgres:5432",
  "store → store:8080",
  "agent-core → agent-core:8080",
  "agent-core → nats:4222",
  "agent-core → redis:6379",
  "tool-runner → nats:4222",
  "channel-gateway → channel-gateway:8080",
  "channel-gateway → channel-gateway:8787",
  "channel-gateway → front:8404",
  "channel-gateway → front:8787",
  "channel-gateway → nats:4222",
  "front → channel-gateway:8080",
  "front → channel-gateway:8787",
  "nats → agent-core:8080",
  "nats → channel-gateway:8080",
  "nats → channel-gateway:8787",
  "nats → store:8080",
  "postgres → store:8080",
  "redis → agent-core:8080",
];

/** Containers that need nothing outside of their networks. */
const isolated: ReadonlySet<string> = new Set(["store", "tool-runner", "postgres", "redis", "nats"]);

const shellAttempts = 8;

interface Target {
  name: string;
  host: string;
  port: number;
}

/** The targets that a container can connect to. */
async function reached(
  cluster: ComposeCluster,
  from: Container,
  targets: readonly Target[],
): Promise<readonly Target[]> {
  const find = "command -v node || command -v bash || echo busybox";
  const program = /\w+$/.exec(await cluster.exec(from, "sh", "-c", find))?.[0];
  const prober = program === "node" || program === "bash" ? program : "busybox";
  // A shell starts a process for each attempt, and the container limits them.
  const size = prober === "node" ? targets.length : shellAttempts;
  const found: Target[] = [];
  for (let first = 0; first < targets.length; first += size) {
    const some = targets.slice(first, first + size);
    const results = parseProbe(await cluster.exec(from, ...probeCommand(prober, some)), some.length);
    found.push(...some.filter((_, number) => results[number]));
  }
  return found;
}

/** As `reached`. A leader that is not scheduled for too long loses its lock and restarts, which ends the attempts: they are made again. */
async function reachedWhileRunning(
  cluster: ComposeCluster,
  from: Container,
  targets: readonly Target[],
): Promise<readonly Target[]> {
  try {
    return await reached(cluster, from, targets);
  } catch (error) {
    const again = (await cluster.containers()).find(({ Id }) => Id === from.Id);
    if (again === undefined || again.State.StartedAt === from.State.StartedAt) throw error;
    return reachedWhileRunning(cluster, again, targets);
  }
}

const addresses = ({ NetworkSettings }: Container): string[] =>
  Object.values(NetworkSettings.Networks).map(({ IPAddress }) => IPAddress);

/**
 * A program of the machine that listens on all addresses: those of the containers' networks, and those that a container reaches only through its
 * gateway, as the internet.
 */
async function listenOutside(containers: readonly Container[]): Promise<{ targets: Target[]; close: () => void }> {
  const machine = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve) => machine.listen(0, "0.0.0.0", resolve));
  const { port } = machine.address() as AddressInfo;
  const hosts = Object.values(networkInterfaces())
    .flatMap((each = []) => each)
    .flatMap(({ address, family }) => (family === "IPv4" && !address.startsWith("127.") ? [address] : []))
    .concat(containers.flatMap((each) => addresses(each).map((address) => address.replace(/\d+$/, "1"))));
  const targets = [...new Set(hosts)].map((host) => ({ name: "the machine", host, port }));
  return { targets, close: () => machine.close() };
}

/** Tries every port of every container from every other one, and a port of the machine. Returns the number of attempts. */
export async function checkConnections(cluster: ComposeCluster): Promise<number> {
  const containers = await cluster.containers();
  assert.deepEqual([...new Set(containers.map(({ service }) => service))].sort(), Object.keys(ports).sort());
  const found = new Set<string>();
  let attempts = 0;
  const outside = await listenOutside(containers);
  try {
    const results = await Promise.allSettled(
      containers.map(async (from) => {
        const own = (ports[from.service] ?? []).map((port) => ({ name: `${port}`, host: "127.0.0.1", port }));
        // Where nothing listens, a refused connection proves nothing.
        assert.equal((await reached(cluster, from, own)).length, own.length, `${from.Name} listens`);
        const others = containers.flatMap((to) =>
          to.Id === from.Id
            ? []
            : addresses(to).flatMap((host) =>
                (ports[to.service] ?? []).map((port) => ({ name: `${to.service}:${port}`, host, port })),
              ),
        );
        for (const { name } of await reachedWhileRunning(cluster, from, others)) found.add(`${from.service} → ${name}`);
        attempts += others.length + outside.targets.length;
        const ways = await reachedWhileRunning(cluster, from, outside.targets);
        const there = ways.map(({ host }) => host).join(", ");
        assert.equal(ways.length === 0, isolated.has(from.service), `${from.Name} reaches the machine at: ${there}`);
      }),
    );
    const failures = results.flatMap((each) => (each.status === "rejected" ? [String(each.reason)] : []));
    assert.deepEqual(failures, []);
  } finally {
    outside.close();
  }
  assert.deepEqual([...found].sort(), connections.toSorted());
  return attempts;
}

/** With infra/docker/web.yml the tool-runner has the internet, and no command does: without bubblewrap, commands are refused. */
export async function checkInternet(cluster: ComposeCluster): Promise<void> {
  const hasRun = async (name: string): Promise<boolean> => {
    const response = await ask(cluster, `tool: exec {"command":"touch ${name}"}\nthen\nsay: done`);
    assert.equal(response.status, 200, await response.text());
    const [runner] = await cluster.containers("tool-runner");
    assert.ok(runner !== undefined);
    return (await cluster.exec(runner, "sh", "-c", `test -e /workspace/${name} && echo yes || echo no`)) === "yes";
  };
  assert.equal(await hasRun("without-internet"), true);
  await cluster.up([], ["infra/docker/web.yml"]);
  const containers = await cluster.containers();
  const outside = await listenOutside(containers);
  try {
    for (const from of containers) {
      if (from.service !== "tool-runner" && !isolated.has(from.service)) continue;
      const ways = await reachedWhileRunning(cluster, from, outside.targets);
      assert.equal(ways.length > 0, from.service === "tool-runner", from.Name);
    }
  } finally {
    outside.close();
  }
  assert.equal(await hasRun("with-internet"), false);
}

const identity =
  "cat /proc/1/status; touch /written 2>&1 && echo WRITTEN; touch /run/secrets/parley/new 2>&1 && echo WRITTEN; true";

/** A user other than root, no capability, no new privilege, a read-only system, limits, and no secret in an environment. */
export async function checkContainers(cluster: ComposeCluster): Promise<void> {
  for (const container of await cluster.containers()) {
    const { service, HostConfig: limits, Name: name } = container;
    const status = await cluster.exec(container, "sh", "-c", identity);
    const [, user] = /^Uid:\t(\d+)/m.exec(status) ?? [];
    if ((services as readonly string[]).includes(service)) assert.equal(user, "10001", name);
    assert.notEqual(user, "0", name);
    for (const set of ["CapEff", "CapPrm", "CapBnd"]) assert.match(status, new RegExp(`^${set}:\t0+$`, "m"), name);
    assert.match(status, /^NoNewPrivs:\t1$/m, name);
    assert.doesNotMatch(status, /WRITTEN/, name);
    assert.ok(limits.Memory > 0 && limits.NanoCpus > 0 && (limits.PidsLimit ?? 0) > 0, `${name} has limits`);
    const { "max-size": size, "max-file": files } = limits.LogConfig.Config;
    assert.deepEqual([limits.LogConfig.Type, size, files], ["json-file", "10m", "5"], name);
    const secret = /^(?:DATABASE_URL|REDIS_URL|\w*(?:PASSWORD|_SEED|(?<!PUBLIC)_KEY|TOKEN_SHA256))=./;
    const inEnvironment = container.Config.Env.filter((each) => secret.test(each)).map(
      (each) => each.split("=")[0] ?? "",
    );
    const expected = service === "tool-runner" ? ["PARLEY_MCP_KEY", "PARLEY_NATS_SEED"] : [];
    assert.deepEqual(inEnvironment.toSorted(), expected, name);
    for (const { Destination, RW } of container.Mounts)
      if (Destination.startsWith("/run/secrets")) assert.equal(RW, false, `${name}: ${Destination}`);
  }
}

function ask({ url, token }: Pick<ComposeCluster, "url" | "token">, content: string): Promise<Response> {
  return fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "parley", messages: [{ role: "user", content }] }),
  });
}

/** The published port answers on loopback and nowhere else. */
export async function checkEntrance(cluster: ComposeCluster): Promise<void> {
  const answer = await (await ask(cluster, "say: it works")).text();
  assert.match(answer, /"content":"it works"/);
  assert.equal((await ask({ ...cluster, token: "wrong" }, "say: no")).status, 401);
  const published = (await cluster.containers()).flatMap(({ HostConfig, service }) =>
    Object.values(HostConfig.PortBindings ?? {}).flatMap((each) => each.map(({ HostIp }) => `${service} ${HostIp}`)),
  );
  assert.deepEqual(published, ["front 127.0.0.1"]);
}
