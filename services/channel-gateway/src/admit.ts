// Who may speak to the agent, and as what. Pure: it is given what the settings and the store know about the sender.
import type { ContactRole, TelegramAccount } from "@parley/contracts";

/** The part of an account's settings that says who is let in. */
export type PeoplePolicy = Pick<TelegramAccount, "owners" | "allow_from" | "dm_policy" | "groups" | "require_mention">;

export interface Sender {
  contactId: string;
  conversation: string;
  /** The group that the conversation is a part of; without it the conversation is the group. */
  group?: string | undefined;
  direct: boolean;
  addressed: boolean;
}

export type Admission =
  | { verdict: "let_in"; role: ContactRole }
  /** A stranger who is answered with a pairing code. */
  | { verdict: "pair" }
  | {
      verdict: "ignore";
      reason: "no_identity" | "blocked" | "direct_disabled" | "stranger" | "group_not_listed" | "not_addressed";
    };

/** What the settings alone say about a contact; undefined: ask the store for `paired`. */
function roleInSettings(policy: PeoplePolicy, contactId: string): ContactRole | undefined {
  if (policy.owners.includes(contactId)) return "owner";
  if (policy.allow_from.includes(contactId)) return "user";
  return undefined;
}

/**
 * Decides about one message. `paired` is what the store knows about the contact, null for a stranger. An empty list lets
 * nobody in; a group counts only when it is listed.
 */
export function admit(policy: PeoplePolicy, sender: Sender, paired: ContactRole | "blocked" | null): Admission {
  if (sender.contactId === "") return { verdict: "ignore", reason: "no_identity" };
  if (!sender.direct) {
    if (!policy.groups.includes(sender.group ?? sender.conversation))
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

/** Whether the verdict on this sender depends on what the store knows about them. */
export function dependsOnPairing(policy: PeoplePolicy, sender: Sender): boolean {
  if (roleInSettings(policy, sender.contactId) !== undefined) return false;
  const stranger = admit(policy, sender, null);
  return stranger.verdict !== "ignore" || stranger.reason === "stranger" || stranger.reason === "direct_disabled";
}
