// Whom an account lets in, and as what. A stranger who may ask is shown a code.
import type { Bus } from "@parley/bus";
import { store, type ContactRole } from "@parley/contracts";
import { admit, dependsOnPairing, type PeoplePolicy } from "./admit.ts";
import type { InboundDraft } from "./channel.ts";
import type { GatewayEvents } from "./events.ts";
import { newPairingCode, pairingCodeHash, pairingText, pairingTtlMs } from "./pairing-code.ts";
import type { Typing } from "./typing.ts";

/** An account as far as letting people in is concerned. */
export interface Doorway {
  channel: string;
  account: string;
  people: PeoplePolicy;
  /** For platforms that show that an answer is being written. */
  typing?: Typing;
}

interface DoorwayDeps {
  bus: Bus;
  events: GatewayEvents;
}

/** What the sender of a draft speaks as; null: the draft is not taken, which is counted, and a stranger may have been shown a code. */
export async function letIn(deps: DoorwayDeps, doorway: Doorway, draft: InboundDraft): Promise<ContactRole | null> {
  const { channel, people } = doorway;
  const sender = {
    contactId: draft.contact.id,
    conversation: draft.conversation,
    group: draft.group,
    direct: draft.direct,
    addressed: draft.addressed,
  };
  const known = dependsOnPairing(people, sender) ? await paired(deps, doorway, draft) : null;
  const admission = admit(people, sender, known);
  if (admission.verdict === "let_in") return admission.role;
  if (admission.verdict === "pair") await offerPairing(deps, doorway, draft);
  else deps.events.inbound(channel, "ignored", admission.reason);
  return null;
}

async function paired({ bus }: DoorwayDeps, { channel, account }: Doorway, draft: InboundDraft) {
  const { contact } = await bus.request(store.contactGet, { channel, account, contactId: draft.contact.id });
  return contact?.role ?? null;
}

async function offerPairing(
  { bus, events }: DoorwayDeps,
  { channel, account }: Doorway,
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
    // In one commit: a request whose code nobody was shown would shut the stranger out for an hour.
    outgoing: { address: draft.replyTo, text: pairingText(code), expiresInMs: pairingTtlMs },
  });
  events.inbound(channel, "ignored", `pairing_${status}`);
}
