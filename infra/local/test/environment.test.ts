import assert from "node:assert/strict";
import { test } from "node:test";

import { services } from "@parley/contracts";

import { serviceEnvironment, type ClusterContext } from "../src/environment.ts";
import { workspaceFolders } from "../src/workspace.ts";

const context: ClusterContext = {
  namespace: "parley",
  natsUrls: {
    store: "nats://store:s3cret-nats-store@h",
    "agent-core": "nats://agent-core:s3cret-nats-core@h",
    "tool-runner": "nats://tool-runner:s3cret-nats-tools@h",
    "channel-gateway": "nats://channel-gateway:s3cret-nats-gateway@h",
  },
  storeUrl: "postgres://parley_store:s3cret-postgres@h/parley",
  redisUrl: "redis://:s3cret-redis@h",
  tokenSha256: "s3cret-hash",
  configPath: "/home/parley.toml",
  folders: workspaceFolders("/home"),
  secretsDir: "/home/secrets",
  bwrapPath: "/usr/bin/bwrap",
};

const person = {
  PATH: "/usr/bin",
  HOME: "/home",
  ANTHROPIC_API_KEY: "s3cret-key",
  ANTHROPIC_BASE_URL: "http://localhost:1",
  OPENAI_API_KEY: "s3cret-openai-key",
  OPENAI_BASE_URL: "http://localhost:2/v1",
  PARLEY_MODEL: "claude-x",
  PARLEY_TOKEN: "s3cret-token",
  PARLEY_CHANNEL_TELEGRAM_TOKEN: "s3cret-telegram",
  PARLEY_EXEC_ISOLATION: "none",
  DATABASE_OWNER_URL: "postgres://parley_owner:s3cret-owner@h/parley",
  AWS_SECRET_ACCESS_KEY: "s3cret-other",
};

const ownSecrets = {
  store: ["s3cret-nats-store", "s3cret-postgres"],
  "agent-core": ["s3cret-key", "s3cret-nats-core", "s3cret-openai-key", "s3cret-redis"],
  "tool-runner": ["s3cret-nats-tools"],
  "channel-gateway": ["s3cret-hash", "s3cret-nats-gateway", "s3cret-telegram"],
};

test("passes each service its own secrets and no other service's", () => {
  for (const service of services) {
    const env = serviceEnvironment(service, { name: `${service}-1`, httpPort: 8787 }, context, person);
    const secrets = Object.values(env).flatMap((value) => value.match(/s3cret-[a-z-]+/g) ?? []);
    assert.deepEqual(secrets.sort(), ownSecrets[service], service);
  }
});

test("passes bucket credentials only to the store, and only with a configured bucket", () => {
  const bucket = { ...person, PARLEY_BLOB_BUCKET: "attachments" };
  for (const service of services) {
    const { AWS_SECRET_ACCESS_KEY: key } = serviceEnvironment(service, { name: "one", httpPort: 1 }, context, bucket);
    assert.equal(key, service === "store" ? "s3cret-other" : undefined, service);
  }
});

test("passes every service its name, the address of the bus and the settings", () => {
  const env = serviceEnvironment("agent-core", { name: "agent-core-2", httpPort: null }, context, person);
  assert.deepEqual(env, {
    NODE_ENV: "production",
    PATH: "/usr/bin",
    HOME: "/home",
    PARLEY_NAMESPACE: "parley",
    PARLEY_NATS_URL: "nats://agent-core:s3cret-nats-core@h",
    PARLEY_REPLICA: "agent-core-2",
    PARLEY_HEALTH_PORT: "0",
    PARLEY_CONFIG: "/home/parley.toml",
    REDIS_URL: "redis://:s3cret-redis@h",
    ANTHROPIC_API_KEY: "s3cret-key",
    ANTHROPIC_BASE_URL: "http://localhost:1",
    OPENAI_API_KEY: "s3cret-openai-key",
    OPENAI_BASE_URL: "http://localhost:2/v1",
    PARLEY_MODEL: "claude-x",
  });
});

test("passes OpenTelemetry's variables to all four services", () => {
  const tracing = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:4318", PARLEY_TRACE_STORE: "true" };
  for (const service of services) {
    const env = serviceEnvironment(service, { name: `${service}-1`, httpPort: 8787 }, context, {
      ...person,
      ...tracing,
    });
    assert.partialDeepStrictEqual(env, tracing);
  }
});

test("treats an empty variable as absent", () => {
  const env = serviceEnvironment("agent-core", { name: "agent-core-1", httpPort: null }, context, {
    ANTHROPIC_API_KEY: "",
  });
  assert.equal("ANTHROPIC_API_KEY" in env, false);
});
