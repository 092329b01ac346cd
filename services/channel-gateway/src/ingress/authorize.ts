// Authorizes the sender of a message at an account. An unknown sender who may pair receives a code.
import type { Bus } from "@parley/bus";
import { store, type ContactRole, type PeoplePolicy } from "@parley/contracts";
import { decideAccess, needsContact } from "./access-policy.ts";
import type { InboundDraft } from "../channels/channel.ts";
import type { GatewayEvents } from "../events.ts";
import { newPairingCode, pairingCodeHash, pairingText, pairingTtlMs } from "../operations/pairing-code.ts";
import type { Typing } from "../delivery/typing.ts";

/** The part of an account that authorization needs. */
export interface AccessPolicy {
  channel: string;
  account: string;
  people: PeoplePolicy;
  /** Only for platforms with a typing indicator. */
  typing?: Typing;
}

interface DoorwayDeps {
  bus: Bus;
  events: GatewayEvents;
}

/** Returns the sender's role; null: the draft is ignored and counted, and an unknown sender may have received a pairing code. */
export async function authorizeSender(
  deps: DoorwayDeps,
  policy: AccessPolicy,
  draft: InboundDraft,
): Promise<ContactRole | null> {
  const { channel, people } = policy;
  const sender = {
    contactId: draft.contact.id,
    conversation: draft.conversation,
    group: draft.group,
    direct: draft.direct,
    addressed: draft.addressed,
  };
  const known = needsContact(people, sender) ? await paired(deps, policy, draft) : null;
  const admission = decideAccess(people, sender, known);
  if (admission.verdict === "let_in") return admission.role;
  if (admission.verdict === "pair") await offerPairing(deps, policy, draft);
  else deps.events.inbound(channel, "ignored", admission.reason);
  return null;
}

async function paired({ bus }: DoorwayDeps, { channel, account }: AccessPolicy, draft: InboundDraft) {
  const { contact } = await bus.request(store.contactGet, { channel, account, contactId: draft.contact.id });
  return contact?.role ?? null;
}

async function offerPairing(
  { bus, events }: DoorwayDeps,
  { channel, account }: AccessPolicy,
  draft: InboundDraft,
): Promise<void> {
  const code = newPairingCode();
  const { status } = await bus.request(store.pairingRequest, {
    channel,
    account,
    contactId: draft.contact.id,
    name: draft.contact.name ?? null,
    codeSha256: pairingCodeHash(code),
    ttlMs: pairingTtlMs,
    // Request and text share one commit: a request whose code was never sent would lock the sender out for an hour.
    outgoing: { address: draft.replyTo, text: pairingText(code), expiresInMs: pairingTtlMs },
  });
  events.inbound(channel, "ignored", `pairing_${status}`);
}
