// Authorizes the sender of a message at an account. An unknown sender who may pair receives a code.
import type { Bus } from "@parley/bus";
import { store, type ContactRole, type PeoplePolicy, type PermissionSettings } from "@parley/contracts";
import { decideAccess, needsContact, type AccessDecision } from "./access-policy.ts";
import type { InboundDraft } from "../channels/channel.ts";
import type { PendingFile } from "./attachments.ts";
import type { GatewayEvents, IgnoredMessage } from "../events.ts";
import { newPairingCode, pairingCodeHash, accessRequestText, pairingText } from "../operations/pairing-code.ts";
import type { TurnIndicators } from "../delivery/turn-indicators.ts";

/** The part of an account that authorization needs. */
export interface AccessPolicy {
  channel: string;
  account: string;
  people: PeoplePolicy;
  /** What commands begin with on this channel, in addition to `/`. */
  commandPrefix?: string | undefined;
  /** What a conversation shows while a turn runs. Omitted: nothing. */
  indicators?: TurnIndicators | undefined;
  /** Fetches the files of a message that was just stored. */
  fetchFiles?: (inboxId: string, files: readonly PendingFile[]) => void;
}

interface DoorwayDeps {
  bus: Bus;
  settings: { permissions: Pick<PermissionSettings, "pairing_minutes"> };
  events: GatewayEvents;
}

/** Returns the admitted sender; null: the draft is ignored and counted, and an unknown sender may have received a pairing code. */
export async function authorizeSender(
  deps: DoorwayDeps,
  policy: AccessPolicy,
  draft: InboundDraft,
): Promise<Admitted | null> {
  const admission = await accessOf(deps, policy, draft);
  if (admission.verdict === "let_in") return admission;
  if (admission.verdict === "pair") await offerPairing(deps, policy, draft);
  else deps.events.ignored(aboutIgnored(policy, draft), ignoredBecause[admission.reason]);
  return null;
}

/** As people read it in the log of the account. */
const ignoredBecause: Readonly<Record<Extract<AccessDecision, { verdict: "ignore" }>["reason"], string>> = {
  no_identity: "the platform does not say who wrote it",
  blocked: "the person is blocked",
  direct_disabled: 'the account has dm_policy = "disabled"',
  stranger: "the person is neither listed nor admitted",
  group_not_listed: "`groups` does not list the group",
  not_addressed: "it does not mention the agent, and require_mention is true",
};

const pairingBecause = {
  created: "the person is unknown and received a pairing code",
  pending: "the person is unknown and already has a pairing code",
  full: "the person is unknown, and too many pairing codes are open",
} as const;

function aboutIgnored({ channel, account }: AccessPolicy, draft: InboundDraft): IgnoredMessage {
  const { contact, conversation, group = conversation, direct } = draft;
  return { channel, account, ...(direct ? {} : { group }), by: contact.id };
}

/** A person who may write. */
export interface Admitted {
  verdict: "let_in";
  role: ContactRole;
  /** The route of another conversation of theirs, which their direct messages join. */
  route?: string;
}

type Sender = Pick<InboundDraft, "contact" | "conversation" | "group" | "direct" | "addressed">;

/** Decides about the sender of a message; sends and counts nothing. */
export async function accessOf(
  deps: Pick<DoorwayDeps, "bus">,
  policy: AccessPolicy,
  { contact, conversation, group, direct, addressed }: Sender,
): Promise<Admitted | Exclude<AccessDecision, { verdict: "let_in" }>> {
  const sender = { contactId: contact.id, conversation, group, direct, addressed };
  const known = needsContact(policy.people, sender) ? await paired(deps, policy, contact.id) : null;
  const decision = decideAccess(policy.people, sender, known?.role ?? null);
  const route = known?.route ?? null;
  return decision.verdict === "let_in" && direct && route !== null ? { ...decision, route } : decision;
}

async function paired({ bus }: Pick<DoorwayDeps, "bus">, { channel, account }: AccessPolicy, contactId: string) {
  return (await bus.request(store.contactGet, { channel, account, contactId })).contact;
}

async function offerPairing(
  { bus, events, settings }: DoorwayDeps,
  policy: AccessPolicy,
  draft: InboundDraft,
): Promise<void> {
  const { channel, account } = policy;
  const code = newPairingCode();
  const minutes = settings.permissions.pairing_minutes;
  const ttlMs = minutes * 60_000;
  const { status } = await bus.request(store.pairingRequest, {
    channel,
    account,
    contactId: draft.contact.id,
    name: draft.contact.name ?? null,
    codeSha256: pairingCodeHash(code),
    ttlMs,
    // Request and text share one commit: a request whose code was never sent would lock the sender out until it expires.
    outgoing: { address: draft.replyTo, text: pairingText(code, minutes), expiresInMs: ttlMs },
    // Without the code: the person proves with it that the account is theirs.
    toOwner: { text: accessRequestText(draft, channel, account), expiresInMs: ttlMs },
  });
  events.ignored(aboutIgnored(policy, draft), pairingBecause[status]);
}
