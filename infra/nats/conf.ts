// The NATS server's configuration for containers: one user per role, with exactly the permissions of the registry. Users log in with NKeys:
// the server knows only their public keys, which it reads from its environment.

import { natsPermissions, roles, type Role } from "@parley/contracts";

/** The environment variable of the server with a role's public key. */
export function publicKeyVariable(role: Role): string {
  return `NATS_${variablePart(role)}_PUBLIC_KEY`;
}

/** The variable of .env with a role's seed. */
export function seedVariable(role: Role): string {
  return `NATS_${variablePart(role)}_SEED`;
}

function variablePart(role: Role): string {
  return role.replaceAll("-", "_").toUpperCase();
}

export function natsConf(namespace: string): string {
  return `# Generated from the registry of packages/contracts; do not edit. To generate it again:
#   node infra/local/bootstrap.mjs infra/nats/write-conf.ts
# Each public key comes from the environment of the server; infra/nats/nkeys.mjs creates keys. Only the services know the seeds.
port: 4222
# Monitoring and /healthz, which name users, subjects and addresses without a password: only from the server's own container.
http: 127.0.0.1:8222
max_payload: 1MB

authorization {
  users: [
${roles.map((role) => user(role, namespace)).join("\n")}
  ]
}
`;
}

function user(role: Role, namespace: string): string {
  const { publish, subscribe, allowResponses } = natsPermissions(role, namespace);
  return `    {
      # ${role}
      nkey: $${publicKeyVariable(role)}
      permissions: {
        publish: ${allow(publish)}
        subscribe: ${allow(subscribe)}
${allowResponses ? "        allow_responses: true\n" : ""}      }
    }`;
}

/** An empty allow list would allow everything. */
function allow(subjects: readonly string[]): string {
  if (subjects.length === 0) return `{ deny: ">" }`;
  return `{
          allow: [
${subjects.map((subject) => `            "${subject}"`).join("\n")}
          ]
        }`;
}
