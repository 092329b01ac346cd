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

/** The environment variable of the server with a role's password, for `passwords` of `natsConf`. */
function passwordVariable(role: Role): string {
  return `NATS_${variablePart(role)}_PASSWORD`;
}

function variablePart(role: Role): string {
  return role.replaceAll("-", "_").toUpperCase();
}

export interface NatsConfOptions {
  /** Admits a second user per role, with a password and the same permissions: for an upgrade from a version whose services used passwords. */
  passwords?: boolean;
}

export function natsConf(namespace: string, { passwords = false }: NatsConfOptions = {}): string {
  const users = roles.flatMap((role) => [
    user(role, namespace, `nkey: $${publicKeyVariable(role)}`),
    ...(passwords ? [user(role, namespace, `user: ${role}\n      password: $${passwordVariable(role)}`)] : []),
  ]);
  return `# Generated from the registry of packages/contracts; do not edit. To generate it again:
#   node infra/local/bootstrap.mjs infra/nats/write-conf.ts
# Each public key comes from the environment of the server; infra/nats/nkeys.mjs creates keys. Only the services know the seeds.
port: 4222
# Monitoring and /healthz, which name users, subjects and addresses without a password: only from the server's own container.
http: 127.0.0.1:8222
max_payload: 1MB
# A client that is silent, because its node or network failed, is dropped within 6 s. Until then it gets its share of the requests to its
# queue group, which time out. The server's default takes 6 minutes. Version 2.9 counts what it sends to a client as activity of that client.
ping_interval: "2s"
ping_max: 2

authorization {
  users: [
${users.join("\n")}
  ]
}
`;
}

function user(role: Role, namespace: string, login: string): string {
  const { publish, subscribe, allowResponses } = natsPermissions(role, namespace);
  return `    {
      # ${role}
      ${login}
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
