// Data that a service sends to a server other than the configured one: captured on the wire, on real processes.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { healthReports, natsPermissions, roles } from "@parley/contracts";
import { connectBus } from "@parley/bus";
import { startNats, startRedis, type NatsServer } from "@parley/local";
import { Cleanup, startTestNats, startStoreStack, startTlsFront, temporaryFolder, tlsFixtures } from "@parley/testing";
import { startService, type ServiceProcess } from "../e2e/support/service-process.ts";

const secret = "password-on-the-wire";
const gateway = { PARLEY_TOKEN: "0123456789abcdef", PARLEY_HTTP_PORT: "0" };
const cleanup = new Cleanup();
after(() => cleanup[Symbol.asyncDispose]());

/** A listener that sends a greeting, stores what it receives, and answers the first bytes with `reply`. */
async function eavesdropper(
  greeting: string,
  reply = "",
): Promise<{ port: number; received(): string; seen(): Promise<void> }> {
  const chunks: Buffer[] = [];
  const third = Promise.withResolvers<void>();
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    if (connections === 3) third.resolve();
    socket.on("error", () => undefined);
    socket.on("data", (chunk) => {
      chunks.push(chunk);
      if (reply !== "") socket.write(reply);
    });
    if (greeting !== "") socket.write(greeting);
    setTimeout(() => socket.destroy(), 200);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  cleanup.add(async () => void server.close());
  return {
    port: (server.address() as AddressInfo).port,
    received: () => Buffer.concat(chunks).toString("latin1"),
    seen: () => third.promise,
  };
}

/** Waits until the service reports this reason; a connection that breaks too early has others. */
async function reports(service: ServiceProcess, subject: string, reason = /^/): Promise<void> {
  await service.until("/startupz", ({ body }) => body.includes(`waiting for ${subject}`) && reason.test(body));
}

describe("the bus", () => {
  const info = JSON.stringify({ server_id: "X", version: "2.10.0", proto: 1, max_payload: 1_048_576, headers: true });
  const users = roles.map((role) => ({ user: role, password: secret, permissions: natsPermissions(role, "parley") }));
  let nats: NatsServer;

  before(async () => {
    const dataDir = join(await temporaryFolder(cleanup), "nats");
    nats = await startNats({ dataDir, users, tls: tlsFixtures.server });
    cleanup.add(() => nats.stop());
  });

  const urlOf = (scheme: string, port: number) => `${scheme}://channel-gateway:${secret}@127.0.0.1:${port}`;

  test("sends no password when a tls:// server offers no TLS", async () => {
    const plain = await eavesdropper(`INFO ${info}\r\n`);
    const running = await startService(cleanup, "channel-gateway", {
      env: { ...gateway, PARLEY_NATS_URL: urlOf("tls", plain.port) },
    });
    await reports(running, "the bus", /offers no TLS/);
    await plain.seen();
    assert.equal(plain.received(), "");
    assert.equal((await running.probe("/readyz")).status, 503);
  });

  test("sends no password when a CA is set and the server offers no TLS", async () => {
    const plain = await eavesdropper(`INFO ${info}\r\n`);
    const running = await startService(cleanup, "channel-gateway", {
      env: { ...gateway, PARLEY_NATS_URL: urlOf("nats", plain.port), PARLEY_NATS_CA_FILE: tlsFixtures.ca },
    });
    await reports(running, "the bus", /offers no TLS/);
    await plain.seen();
    assert.equal(plain.received(), "");
  });

  test("names the CA setting once when the certificate cannot be verified", async () => {
    const running = await startService(cleanup, "channel-gateway", {
      env: { ...gateway, PARLEY_NATS_URL: urlOf("tls", nats.port) },
    });
    await reports(running, "the bus", /certificate cannot be verified .*set PARLEY_NATS_CA_FILE/);
    assert.equal(running.lines.filter((line) => line.includes("PARLEY_NATS_CA_FILE")).length, 1);
  });

  test("becomes ready and reports an encrypted link when the CA is set", async () => {
    const running = await startService(cleanup, "channel-gateway", {
      env: { ...gateway, PARLEY_NATS_URL: urlOf("tls", nats.port), PARLEY_NATS_CA_FILE: tlsFixtures.ca },
    });
    await running.until("/readyz", ({ status }) => status === 200);
    const operator = await connectBus({
      url: `tls://operator:${secret}@127.0.0.1:${nats.port}`,
      tls: { caFile: tlsFixtures.ca },
      namespace: "parley",
      role: "operator",
      name: "test",
      log: { info: () => undefined, warn: () => undefined, error: () => undefined },
    });
    cleanup.add(() => operator.drain());
    assert.equal(operator.encrypted, true);
    const report = await operator.request(healthReports["channel-gateway"], {});
    assert.equal(report.details["busEncrypted"], true);
  });

  test("refuses a certificate of the right CA when it is for another host", async () => {
    const dataDir = join(await temporaryFolder(cleanup), "nats");
    const other = await startNats({ dataDir, users, tls: tlsFixtures.otherHost });
    cleanup.add(() => other.stop());
    const running = await startService(cleanup, "channel-gateway", {
      env: { ...gateway, PARLEY_NATS_URL: urlOf("tls", other.port), PARLEY_NATS_CA_FILE: tlsFixtures.ca },
    });
    await reports(running, "the bus", /certificate cannot be verified .*127\.0\.0\.1/);
  });

  test("presents a client certificate when the server demands one", async () => {
    const dataDir = join(await temporaryFolder(cleanup), "nats");
    const strict = await startNats({ dataDir, users, tls: { ...tlsFixtures.server, clientCa: tlsFixtures.ca } });
    cleanup.add(() => strict.stop());
    const running = await startService(cleanup, "channel-gateway", {
      env: {
        ...gateway,
        PARLEY_NATS_URL: urlOf("tls", strict.port),
        PARLEY_NATS_CA_FILE: tlsFixtures.ca,
        PARLEY_NATS_CERT_FILE: tlsFixtures.client.cert,
        PARLEY_NATS_KEY_FILE: tlsFixtures.client.key,
      },
    });
    await running.until("/readyz", ({ status }) => status === 200);
  });

  // design: 000.35
  test("ends with exit code 78 when the scheme of a URL is unknown", async () => {
    for (const [service, env, name] of [
      ["channel-gateway", { ...gateway, PARLEY_NATS_URL: `wss://x:${secret}@127.0.0.1:1` }, "PARLEY_NATS_URL"],
      ["agent-core", { REDIS_URL: `tls://:${secret}@127.0.0.1:1` }, "REDIS_URL"],
      ["store", { DATABASE_URL: `tls://x:${secret}@127.0.0.1:1/parley` }, "DATABASE_URL"],
    ] as const) {
      const running = await startService(cleanup, service, { env });
      await running.ended;
      assert.equal(running.child.exitCode, 78, service);
      const text = running.lines.join("\n");
      assert.match(text, new RegExp(`${name}: .*unknown scheme`));
      assert.ok(!text.includes(secret));
    }
  });
});

describe("Redis", () => {
  test("sends no password in plain text and verifies the server with its CA", async () => {
    const nats = await startTestNats(cleanup);
    const bus = { PARLEY_NATS_URL: nats.urlFor("agent-core"), PARLEY_MODEL: "rehearsal" };
    const plain = await eavesdropper("");
    const wrong = await startService(cleanup, "agent-core", {
      env: { ...bus, REDIS_URL: `redis://:${secret}@127.0.0.1:${plain.port}`, REDIS_CA_FILE: tlsFixtures.ca },
    });
    await reports(wrong, "Redis");
    await plain.seen();
    assert.ok(plain.received() !== "" && !plain.received().includes(secret));

    const redis = await startRedis({ dataDir: join(await temporaryFolder(cleanup), "redis") });
    cleanup.add(() => redis.stop());
    const port = await startTlsFront(cleanup, redis.port);
    const url = redis.url.replace("redis://", "rediss://").replace(String(redis.port), String(port));
    const untrusting = await startService(cleanup, "agent-core", { env: { ...bus, REDIS_URL: url } });
    await reports(untrusting, "Redis", /certificate cannot be verified .*set REDIS_CA_FILE/);
    const trusting = await startService(cleanup, "agent-core", {
      env: { ...bus, REDIS_URL: url, REDIS_CA_FILE: tlsFixtures.ca },
    });
    await trusting.until("/startupz", ({ status }) => status === 200);
  });
});

describe("PostgreSQL", () => {
  test("sends no password in plain text and verifies the server with its CA", async () => {
    const { nats, postgres } = await startStoreStack(cleanup);
    const bus = { PARLEY_NATS_URL: nats.urlFor("store") };
    // "N" means that the server has no TLS.
    const plain = await eavesdropper("", "N");
    const wrong = await startService(cleanup, "store", {
      env: {
        ...bus,
        DATABASE_URL: `postgres://store:${secret}@127.0.0.1:${plain.port}/parley`,
        DATABASE_CA_FILE: tlsFixtures.ca,
      },
    });
    await reports(wrong, "the database", /does not support SSL/);
    await plain.seen();
    assert.ok(plain.received() !== "" && !plain.received().includes(secret));

    const behind = new URL(postgres.storeUrl).port;
    const port = await startTlsFront(cleanup, Number(behind), { postgres: true });
    const url = postgres.storeUrl.replace(`:${behind}/`, `:${port}/`);
    const untrusting = await startService(cleanup, "store", {
      env: { ...bus, DATABASE_URL: `${url}?sslmode=verify-full` },
    });
    await reports(untrusting, "the database", /certificate cannot be verified .*set DATABASE_CA_FILE/);
    const trusting = await startService(cleanup, "store", {
      env: { ...bus, DATABASE_URL: url, DATABASE_CA_FILE: tlsFixtures.ca },
    });
    await trusting.until("/readyz", ({ status }) => status === 200);
  });
});
