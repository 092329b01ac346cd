// Prints the secrets of the dev overlay with new random passwords. Run it once: the volume of PostgreSQL keeps the first ones.
//   node k8s/overlays/dev/make-secrets.mjs | kubectl apply -f -
// The token and the operator's login to NATS go to standard error. Model keys (ANTHROPIC_API_KEY, OPENAI_API_KEY) and the attachment bucket (PARLEY_BLOB_BUCKET, …) are
// copied from the environment if they are set.

import { createHash, randomBytes } from "node:crypto";

import { createUserKey } from "../../../infra/nats/nkeys.mjs";

const password = () => `p${randomBytes(20).toString("hex")}`;
const token = randomBytes(24).toString("base64url");
const roles = ["store", "agent-core", "tool-runner", "channel-gateway", "operator"];

const nats = Object.fromEntries(roles.map((role) => [role, createUserKey()]));
/** What the server may know. */
const publicKeys = Object.fromEntries(roles.map((role) => [role, nats[role].publicKey]));
const postgres = { superuser: password(), owner: password(), store: password() };
const redis = { password: password() };
const natsLogin = (role) => ({ "nats-url": "nats://nats:4222", "nats-seed": nats[role].seed });
const databaseUrl = (role) => `postgres://parley_${role}:${postgres[role]}@postgres:5432/parley`;
const { env } = process;
/** The entries whose variables are set. */
const taken = (keys) =>
  Object.fromEntries(Object.entries(keys).flatMap(([key, variable]) => (env[variable] ? [[key, env[variable]]] : [])));

const secrets = {
  "parley-dev-nats": publicKeys,
  "parley-dev-postgres": postgres,
  "parley-dev-redis": redis,
  "parley-migrate": { "database-url": databaseUrl("owner") },
  "parley-store": {
    "database-url": databaseUrl("store"),
    ...natsLogin("store"),
    ...taken({
      "blob-bucket": "PARLEY_BLOB_BUCKET",
      "blob-endpoint": "PARLEY_BLOB_ENDPOINT",
      "blob-region": "PARLEY_BLOB_REGION",
      "blob-access-key-id": "AWS_ACCESS_KEY_ID",
      "blob-secret-access-key": "AWS_SECRET_ACCESS_KEY",
    }),
  },
  "parley-agent-core": {
    "redis-url": `redis://agent-core:${redis.password}@redis:6379`,
    ...natsLogin("agent-core"),
    ...taken({ "anthropic-api-key": "ANTHROPIC_API_KEY", "openai-api-key": "OPENAI_API_KEY" }),
  },
  "parley-tool-runner": { ...natsLogin("tool-runner"), "mcp-key": randomBytes(32).toString("base64url") },
  "parley-channel-gateway": {
    ...natsLogin("channel-gateway"),
    "token-sha256": createHash("sha256").update(token).digest("hex"),
  },
};

const items = Object.entries(secrets).map(([name, stringData]) => ({
  apiVersion: "v1",
  kind: "Secret",
  metadata: { name, namespace: "parley-dev", labels: { "app.kubernetes.io/part-of": "parley" } },
  stringData,
}));
console.log(JSON.stringify({ apiVersion: "v1", kind: "List", items }, null, 2));
console.error(`PARLEY_TOKEN=${token}\nNATS_OPERATOR_SEED=${nats.operator.seed}`);
