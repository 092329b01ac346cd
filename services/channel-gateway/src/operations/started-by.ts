// Which turns a sender may stop: the owner any turn, others only turns they started. Pure.
import type { ContactRole, InputOf, store } from "@parley/contracts";

/** Returns the restriction of `store.turn.cancel` for a sender; empty for the owner. `direct` defaults to true. */
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
