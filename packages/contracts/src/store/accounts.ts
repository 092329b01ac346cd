// Accounts on channels, as the store sees them: ownership, pauses, and the counts of their messages.
import { z } from "zod";
import { Empty, storeRequest } from "./shared.ts";

const AccountRef = z.object({ channel: z.string().min(1), account: z.string().min(1) });

const AccountStatusSchema = AccountRef.extend({
  /** The process instance that owns the connection, `replica/incarnation`; null: nobody, or the platform calls the gateway. */
  owner: z.string().nullable(),
  /** Since when nothing is sent and received, and who paused it; null: it is not paused. */
  paused: z.object({ at: z.string(), by: z.string() }).nullable(),
  /** When the last message was stored and the last one sent; ISO 8601, UTC; null: none is kept. */
  lastInAt: z.string().nullable(),
  lastOutAt: z.string().nullable(),
  /** Texts that wait to be sent. */
  waiting: z.number().int(),
  /** Texts of the last 24 hours of which a message may not have arrived. */
  unknown: z.number().int(),
  /** The newest error of a text of the last 24 hours; null: none. */
  lastError: z.string().nullable(),
});
export type AccountStatus = z.infer<typeof AccountStatusSchema>;

export const accountStatus = storeRequest({
  subject: "store.account.status",
  clients: ["channel-gateway"],
  doc: "Get owner, pause and message counts of accounts.",
  input: z.object({ accounts: z.array(AccountRef).max(200) }),
  output: z.object({ accounts: z.array(AccountStatusSchema) }),
});

export const accountPause = storeRequest({
  subject: "store.account.pause",
  clients: ["channel-gateway"],
  doc: "Pause or resume an account on all replicas. A pause ends the connection's lease and grants no new one, and claims of its texts are empty; the texts wait.",
  input: AccountRef.extend({ paused: z.boolean(), by: z.string() }),
  output: Empty,
});
