// Whose turns a sender may stop: the owner any, other people those they started. Pure.
import type { ContactRole, InputOf, store } from "@parley/contracts";

/** The restriction of `store.turn.cancel` for a sender; empty for the owner. `direct` left out: a conversation with one person. */
export function startedByOf(sender: {
  role: ContactRole;
  channel: string;
  account: string;
  contact: { id: string };
  direct?: boolean | undefined;
}): Pick<InputOf<typeof store.turnCancel>, "startedBy"> {
  const { role, channel, account, contact, direct = true } = sender;
  if (role === "owner") return {};
  return { startedBy: { trust: role, ...(direct ? {} : { sender: { channel, account, contactId: contact.id } }) } };
}
