// People: who may write to the agent, beyond the lists of parley.toml.
import { operations, personLimitsOf, routeOfKey, store, type ContactRole } from "@parley/contracts";
import { implement, UsageError, type OperationCall, type OperationDeps } from "./operation.ts";
import { pairingCodeHash } from "./pairing-code.ts";

/** What limits the effect of a stored role: the lists in the account's settings decide first. */
function noteFor({ channels }: Pick<OperationDeps, "channels">, contact: store.Contact): string | null {
  const account = channels.peopleOf(contact);
  if (account === null) return `the account ${contact.channel}:${contact.account} is not configured or disabled`;
  const list = (["owners", "allow_from"] as const).find((name) => account[name].includes(contact.contactId));
  if (list === undefined) return null;
  return `[channels.${contact.channel}.${contact.account}] ${list} names them and decides first: remove them from the list`;
}

/** How long the news of a linked chat waits for the owner's channel. */
const linkNewsMs = 7 * 24 * 3_600_000;

type PersonRef = Pick<store.Contact, "channel" | "account" | "contactId">;

function personText({
  name,
  contactId,
  channel,
  account,
}: Pick<store.Contact, "channel" | "account" | "contactId" | "name">) {
  return `${name ?? contactId} (${contactId}) on ${channel}:${account}`;
}

/** Owners are exempt while their role has no limits, so limits of one owner have no effect. */
function exemptionOf({ channels, settings }: OperationDeps, { channel, account, contactId }: PersonRef): string | null {
  const isOwner =
    channel === "http" ? contactId === "owner" : channels.peopleOf({ channel, account })?.owners.includes(contactId);
  if (isOwner !== true || Object.values(settings.people.limits.owner).some((limit) => limit > 0)) return null;
  return "they are an owner: their limits have no effect while [people.limits.owner] sets none";
}

const linkText = ({ route }: store.Contact) => (route === null || route === undefined ? "" : `, linked to ${route}`);

/** Admits the person who received the code. */
export function admitWithCode({ code, role }: { code: string; role: ContactRole }, call: OperationCall) {
  const codeSha256 = pairingCodeHash(code);
  const opId = call.operationId(`person:pair:${codeSha256}`);
  return call.deps.bus.request(store.pairingApprove, { opId, codeSha256, role });
}

export const peopleOperations = [
  implement(
    operations.peopleList,
    async (_input, { deps: { bus } }) => {
      const [{ contacts }, { pairings }] = await Promise.all([
        bus.request(store.contactList, {}),
        bus.request(store.pairingList, {}),
      ]);
      return { contacts, pairings };
    },
    ({ contacts, pairings }) => {
      const known = contacts.map((each) => `${each.role}  ${personText(each)}${linkText(each)}`);
      const asking = pairings.map((each) => `asks for access  ${personText(each)}`);
      if (known.length + asking.length === 0) return "Nobody was admitted or blocked, and nobody asks for access.";
      return [...asking, ...known].join("\n");
    },
  ),

  implement(operations.peopleLimits, async (_input, { deps: { bus, settings } }) => {
    const { owner, user, guest, token } = settings.people.limits;
    const { people } = await bus.request(store.personLimitsList, {});
    const roles = { owner: personLimitsOf(owner), user: personLimitsOf(user), guest: personLimitsOf(guest) };
    return { people, roles: { ...roles, token: personLimitsOf(token) } };
  }),

  implement(operations.peopleLimit, async (change, { deps }) => {
    const { own } = await deps.bus.request(store.personLimitsSet, change);
    return { own, note: exemptionOf(deps, change) };
  }),

  implement(operations.peopleSet, async ({ name, ...person }, { deps }) => {
    const { contact } = await deps.bus.request(store.contactSet, { ...person, name: name ?? null });
    return { contact, note: noteFor(deps, contact) };
  }),

  implement(operations.peopleRemove, (person, call) => {
    const opId = call.operationId(`person:remove:${person.channel}:${person.account}:${person.contactId}`);
    return call.deps.bus.request(store.contactRemove, { opId, ...person });
  }),

  implement(
    operations.peoplePair,
    admitWithCode,
    ({ contact }) => `${personText(contact)} is admitted as ${contact.role}.`,
  ),

  implement(
    operations.peopleLink,
    async ({ code, session, role }, call) => {
      const { speaker, deps } = call;
      if (!speaker.direct) throw new UsageError("Link chats in a conversation with me alone.");
      const isOwn = speaker.access === undefined;
      const route = isOwn ? speaker.route : routeOfKey((await call.session(session)).key);
      const codeSha256 = pairingCodeHash(code);
      const opId = call.operationId(`person:link:${codeSha256}`);
      const admitted = { opId, codeSha256, role: isOwn ? speaker.role : role, route };
      // An owner knows what they have linked.
      const isOwner = speaker.role === "owner";
      const toOwner = { text: `${call.actor} has linked another chat, with the same rights:`, expiresInMs: linkNewsMs };
      return deps.bus.request(store.contactLink, isOwner ? admitted : { ...admitted, toOwner });
    },
    ({ contact }) => `${personText(contact)} is linked: direct messages from there join this conversation.`,
  ),
];
