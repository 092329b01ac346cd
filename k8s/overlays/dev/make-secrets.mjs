// Prints the secrets of the dev overlay with new random passwords. Run it once: the volume of PostgreSQL keeps the first ones.
//   node k8s/overlays/dev/make-secrets.mjs | kubectl apply -f -
// The token goes to standard error. ANTHROPIC_API_KEY and OPENAI_API_KEY are taken over from the environment when they are set.

import { createHash, randomBytes } from "node:crypto";

const password = () => `p${randomBytes(20).toString("hex")}`; // begins with a letter, for NATS
const token = randomBytes(24).toString("base64url");
const roles = ["store", "agent-core", "tool-runner", "channel-gateway", "operator"];

const nats = Object.fromEntries(roles.map((role) => [role, password()]));
const postgres = { superuser: password(), owner: password(), store: password() };
const redis = { password: password() };
const natsUrl = (role) => `nats://${role}:${nats[role]}@nats:4222`;
const databaseUrl = (role) => `postgres://parley_${role}:${postgres[role]}@postgres:5432/parley`;
const { ANTHROPIC_API_KEY: anthropicKey, OPENAI_API_KEY: openAiKey } = process.env;

const secrets = {
  "parley-dev-nats": nats,
  "parley-dev-postgres": postgres,
  "parley-dev-redis": redis,
  "parley-migrate": { "database-url": databaseUrl("owner") },
  "parley-store": { "database-url": databaseUrl("store"), "nats-url": natsUrl("store") },
  "parley-agent-core": {
    "redis-url": `redis://:${redis.password}@redis:6379`,
    "nats-url": natsUrl("agent-core"),
    ...(anthropicKey ? { "anthropic-api-key": anthropicKey } : {}),
    ...(openAiKey ? { "openai-api-key": openAiKey } : {}),
  },
  "parley-tool-runner": { "nats-url": natsUrl("tool-runner") },
  "parley-channel-gateway": {
    "nats-url": natsUrl("channel-gateway"),
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
console.error(`PARLEY_TOKEN=${token}`);
