// The NATS server's configuration for containers: one user per role, with exactly the permissions of the registry. It contains no
// passwords: the server reads them from its environment.

import { natsPermissions, roles, type Role } from "@parley/contracts";

/** The environment variable with a role's password. */
export function passwordVariable(role: Role): string {
  return `NATS_${role.replaceAll("-", "_").toUpperCase()}_PASSWORD`;
}

export function natsConf(namespace: string): string {
  return `# Generated from the registry of packages/contracts; do not edit. To generate it again:
#   node infra/local/bootstrap.mjs infra/nats/write-conf.ts
# Each password comes from the environment of the server. It must begin with a letter and contain only letters and digits.
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
      user: "${role}"
      password: $${passwordVariable(role)}
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
