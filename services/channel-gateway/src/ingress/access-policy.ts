// Decides who may write to the agent, and with which role. Pure: the caller supplies the settings and the stored contact.
import type { ContactRole, PeoplePolicy } from "@parley/contracts";

export interface Sender {
  contactId: string;
  conversation: string;
  /** The group that contains the conversation; undefined: the conversation is the group. */
  group?: string | undefined;
  direct: boolean;
  addressed: boolean;
}

export type AccessDecision =
  | { verdict: "let_in"; role: ContactRole }
  /** An unknown sender, who receives a pairing code. */
  | { verdict: "pair" }
  | {
      verdict: "ignore";
      reason: "no_identity" | "blocked" | "direct_disabled" | "stranger" | "group_not_listed" | "not_addressed";
    };

/** The role that the settings give a contact; undefined: the stored contact decides. */
function roleInSettings(policy: PeoplePolicy, contactId: string): ContactRole | undefined {
  if (policy.owners.includes(contactId)) return "owner";
  if (policy.allow_from.includes(contactId)) return "user";
  return undefined;
}

/**
 * Decides about one message. `paired` is the role of the stored contact, null for an unknown sender. An empty list admits nobody; an
 * unlisted group is ignored.
 */
export function decideAccess(
  policy: PeoplePolicy,
  sender: Sender,
  paired: ContactRole | "blocked" | null,
): AccessDecision {
  if (sender.contactId === "") return { verdict: "ignore", reason: "no_identity" };
  if (!sender.direct) {
    if (!policy.groups.includes("*") && !policy.groups.includes(sender.group ?? sender.conversation))
      return { verdict: "ignore", reason: "group_not_listed" };
    if (policy.require_mention && !sender.addressed) return { verdict: "ignore", reason: "not_addressed" };
  }
  const known = roleInSettings(policy, sender.contactId) ?? paired;
  if (known === "blocked") return { verdict: "ignore", reason: "blocked" };
  if (sender.direct && policy.dm_policy === "disabled" && known !== "owner") {
    return { verdict: "ignore", reason: "direct_disabled" };
  }
  if (known !== null) return { verdict: "let_in", role: known };
  if (!sender.direct) return { verdict: "let_in", role: "guest" };
  switch (policy.dm_policy) {
    case "pairing":
      return { verdict: "pair" };
    case "open":
      return { verdict: "let_in", role: "guest" };
    default:
      return { verdict: "ignore", reason: "stranger" };
  }
}

/** Whether the decision about this sender depends on their stored contact. */
export function needsContact(policy: PeoplePolicy, sender: Sender): boolean {
  if (roleInSettings(policy, sender.contactId) !== undefined) return false;
  const stranger = decideAccess(policy, sender, null);
  return stranger.verdict !== "ignore" || stranger.reason === "stranger" || stranger.reason === "direct_disabled";
}
