// NATS permissions, derived from the registry: a role can publish and subscribe only what the registry allows.
import { subjectOf } from "./contract.ts";
import { registry } from "./registry.ts";
import type { Role } from "./roles.ts";

export interface NatsPermissions {
  publish: string[];
  /** The NATS form `<subject> <queue>` allows the subject only in that queue group: a plain subscription would receive every request. */
  subscribe: string[];
  /** May publish to the reply subject of a received request without a permission for that subject. */
  allowResponses: boolean;
}

/** The prefix of a role's reply subjects: no role can read the replies to another role. */
export function inboxPrefix(role: Role): string {
  return `_INBOX_${role.replaceAll("-", "_")}`;
}

export function natsPermissions(role: Role, namespace: string): NatsPermissions {
  const publish: string[] = [];
  const subscribe: string[] = [`${inboxPrefix(role)}.>`];
  let serves = false;
  for (const contract of registry) {
    const subject = subjectOf(contract, namespace);
    if (contract.kind === "request") {
      if (contract.clients.includes(role)) publish.push(subject);
      if (contract.server === role) {
        subscribe.push(contract.served === "group" ? `${subject} ${contract.server}` : subject);
        serves = true;
      }
    } else {
      if (contract.publishers.includes(role)) publish.push(subject);
      if (contract.consumers.includes(role)) subscribe.push(subject);
    }
  }
  return { publish: publish.sort(), subscribe: subscribe.sort(), allowResponses: serves };
}
