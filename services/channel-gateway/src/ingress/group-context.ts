// Unmentioned messages of groups as context, for accounts with `group_context`: kept under the rules that a mention would meet, and given
// with the next message that mentions the agent.
import type { Bus } from "@parley/bus";
import { store, type InputOf } from "@parley/contracts";
import type { InboundDraft } from "../channels/channel.ts";
import { accessOf, type AccessPolicy, type Admitted } from "./authorize.ts";

/** What stores a message together with the context of its place; nothing where there is none. */
export function contextOf(
  { people }: Pick<AccessPolicy, "people">,
  draft: Pick<InboundDraft, "direct" | "conversation" | "group" | "opensThread">,
): Pick<InputOf<typeof store.inboxPut>, "context"> {
  const hasContext = people.group_context === true && people.require_mention && !draft.direct;
  return hasContext ? { context: { place: placeOf(draft) } } : {};
}

/**
 * Keeps a message that was not let in because it does not mention the agent. Nothing of people who may not write, and nothing of groups
 * that are not listed. Rejects when the store is unavailable; keeping a message again has no further effect.
 */
export async function keepAsContext(
  bus: Bus,
  policy: AccessPolicy,
  draft: InboundDraft,
  routeFor: (sender: Admitted) => string,
): Promise<void> {
  const { context } = contextOf(policy, draft);
  if (context === undefined || draft.addressed) return;
  const access = await accessOf({ bus }, policy, { ...draft, addressed: true });
  const text = textOf(draft);
  if (access.verdict !== "let_in" || text === "") return;
  const { channel, account } = policy;
  const { externalId, messageId, conversation, contact } = draft;
  await bus.request(store.groupKeep, {
    channel,
    account,
    externalId,
    ...(messageId === undefined ? {} : { messageId }),
    conversation,
    ...context,
    route: routeFor(access),
    contact,
    text,
  });
}

function placeOf({ conversation, group, opensThread }: Parameters<typeof contextOf>[1]): string {
  return opensThread === true ? (group ?? conversation) : conversation;
}

/** Files are not fetched for context: their names show that there were some. */
function textOf({ text, files = [], forwarded }: InboundDraft): string {
  const names = files.map(({ kind, name }) => `[${name === undefined ? kind : `${kind}: ${name}`}]`);
  const marked = forwarded === undefined || text.trim() === "" ? text.trim() : `[forwarded] ${text.trim()}`;
  return [marked, ...names].filter((part) => part !== "").join(" ");
}
