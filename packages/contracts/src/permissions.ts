// NATS permissions, derived from the registry: a role may say and hear what the registry gives it, and nothing else.
import { subjectOf } from "./contract.ts";
import { registry } from "./registry.ts";
import type { Role } from "./roles.ts";

export interface NatsPermissions {
  publish: string[];
  /** NATS's form `<subject> <queue>` allows the subject in that queue group only: a plain subscription would copy every request. */
  subscribe: string[];
  /** May answer a request on the reply subject it carries, without a standing permission for it. */
  allowResponses: boolean;
}

/** The prefix of a role's reply subjects: a role cannot read what another one is answered. */
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
