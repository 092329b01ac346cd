// What an adapter reports about an earlier message: an edit, a deletion, a reaction, or a change of the agent's membership of a group.
// Queued messages change; an edit of a message that the agent is working on reaches it as a new message, and so do the events that the
// account names; everything else is recorded.
import type { Bus } from "@parley/bus";
import type { Logger } from "@parley/chassis";
import { store, type PeoplePolicy } from "@parley/contracts";
import { nameUuid, oneLine } from "@parley/kit";
import type { InboundChange, InboundDraft } from "../channels/channel.ts";
import type { GatewayEvents } from "../events.ts";
import { parseInput } from "../operations/parse-input.ts";
import { accessOf, type AccessPolicy } from "./authorize.ts";

interface ChangeDeps {
  bus: Bus;
  log: Pick<Logger, "info" | "warn">;
  events: GatewayEvents;
  /** Shows clients that a queue has changed. */
  live: { refresh(): void };
  /** Stops a turn. */
  cancel(turn: { sessionId: string; turnId: string; queued: false }): Promise<unknown>;
}

/** A message that tells the agent about a change. */
interface ChangeMessage {
  draft: InboundDraft;
  /** It belongs to the running turn. */
  mode?: "steer";
}

/** The longest reaction that the agent is shown: an emoji, or the name of one. */
const maxReactionChars = 64;
/** The owner is notified of a removal within this time. */
const noticeExpiresMs = 24 * 60 * 60 * 1_000;

/** Applies a change. Returns a message for the agent; undefined: nothing is left to do. */
export async function applyChange(
  deps: ChangeDeps,
  policy: AccessPolicy,
  changed: InboundChange,
): Promise<ChangeMessage | undefined> {
  const { channel, account, people } = policy;
  const { change, conversation, messageId, contact } = changed;
  deps.events.inbound(channel, "change", change.kind);
  if (change.kind === "membership") {
    recordMembership(deps.log, policy, changed, change.joined);
    if (!change.joined) await endGroup(deps, policy, changed);
  }
  if (change.kind !== "edited" && change.kind !== "deleted") return eventMessage(deps, policy, changed);
  const access = await accessOf(deps, policy, { ...changed, addressed: true });
  // A deletion only withdraws a message that was let in, so it needs no rights of its own.
  if (change.kind === "edited" && (access.verdict !== "let_in" || change.text.trim() === "")) return undefined;
  const edited = change.kind === "edited" ? textOf(change.text, policy.commandPrefix) : "";
  const { outcome, running, text } = await deps.bus.request(store.inboxChange, {
    channel,
    account,
    conversation,
    messageId,
    contactId: contact.id,
    change: change.kind === "edited" ? { do: "text", text: edited } : { do: "withdraw" },
  });
  if (outcome === "changed") deps.live.refresh();
  if (change.kind !== "edited" || outcome !== "processed" || !reachesAgent(people.edits, running)) return undefined;
  const quote = { text, ofSender: true };
  return { draft: draftOf(changed, `[I edited the quoted message. It now says:]\n${edited}`, quote), mode: "steer" };
}

/** Ends what waits in a group that the agent was removed from, and tells the owner. */
async function endGroup(
  deps: ChangeDeps,
  { channel, account }: AccessPolicy,
  { externalId, conversation, group = conversation, contact }: InboundChange,
): Promise<void> {
  const by = contact.id === "" ? "" : ` by ${contact.name ?? contact.id} (${contact.id})`;
  const text = `I was removed from the group ${group} on ${channel}:${account}${by}. Messages and answers that waited there are cancelled.`;
  const { turns } = await deps.bus.request(store.groupLeave, {
    opId: nameUuid(`left:${channel}:${account}:${externalId}`),
    channel,
    account,
    group,
    toOwner: { text, expiresInMs: noticeExpiresMs },
  });
  for (const turn of turns) await deps.cancel({ ...turn, queued: false });
  deps.live.refresh();
}

/** The message about a reaction or a change of membership, if the account names the event and its person may write to the agent. */
async function eventMessage(
  deps: ChangeDeps,
  policy: AccessPolicy,
  changed: InboundChange,
): Promise<ChangeMessage | undefined> {
  const { channel, account, people } = policy;
  const { change, conversation, messageId } = changed;
  const isNamed = (name: "reaction" | "added") => people.events?.includes(name) === true;
  const isReaction =
    change.kind === "reaction" && change.ofAgent !== false && change.removed !== true && isNamed("reaction");
  const isAdded = change.kind === "membership" && change.joined && isNamed("added");
  if (!isReaction && !isAdded) return undefined;
  const access = await accessOf(deps, policy, { ...changed, addressed: true });
  if (access.verdict !== "let_in") return undefined;
  if (!isReaction) return { draft: draftOf(changed, "[I added you to this group.]") };
  const { text } = await deps.bus.request(store.outboxFind, { channel, account, conversation, messageId });
  if (text === null && change.ofAgent === "unknown") return undefined;
  const reaction = oneLine(change.reaction, maxReactionChars);
  return text === null
    ? { draft: draftOf(changed, `[I reacted with ${reaction} to a message of yours.]`) }
    : { draft: draftOf(changed, `[I reacted with ${reaction} to the quoted message.]`, { text, ofAgent: true }) };
}

function draftOf(
  { externalId, conversation, group, contact, direct, replyTo }: InboundChange,
  text: string,
  quote?: InboundDraft["quote"],
): InboundDraft {
  return {
    externalId,
    conversation,
    ...(group === undefined ? {} : { group }),
    contact,
    direct,
    addressed: true,
    replyTo,
    ...(quote === undefined ? {} : { quote }),
    text,
  };
}

/** Without a prefix that chooses the queue mode, as in the stored message. A command is text here: an edit runs nothing. */
function textOf(written: string, commandPrefix: string | undefined): string {
  const parsed = parseInput(written, commandPrefix);
  return parsed.kind === "message" ? parsed.text : written;
}

function reachesAgent(edits: PeoplePolicy["edits"], running: boolean): boolean {
  return edits === "always" || (edits !== "queued" && running);
}

function recordMembership(
  log: ChangeDeps["log"],
  { channel, account, people }: AccessPolicy,
  { conversation, group = conversation, direct, contact }: InboundChange,
  joined: boolean,
): void {
  if (direct) return;
  const about = { channel, account, group, by: contact.id };
  if (!joined) log.info(about, "agent removed from a group");
  else if (people.groups.includes("*") || people.groups.includes(group)) log.info(about, "agent added to a group");
  else log.warn(about, "agent added to a group that the account's `groups` do not list: its messages are ignored");
}
