// Accounts on channels, as the store sees them: ownership, pauses, and the counts of their messages.
import { z } from "zod";
import { Empty, storeRequest } from "./shared.ts";

const AccountRef = z.object({ channel: z.string().min(1), account: z.string().min(1) });

const AccountStatusSchema = AccountRef.extend({
  /** The process instance that owns the connection, `replica/incarnation`; null: nobody, or the platform calls the gateway. */
  owner: z.string().nullable(),
  /** Since when nothing is sent and received, and who paused it; null: it is not paused. */
  paused: z.object({ at: z.string(), by: z.string() }).nullable(),
  /** The gateway that its connections were moved to; null: the gateways choose. */
  movedTo: z.string().nullable().default(null),
  /** When the last message was stored and the last one sent; ISO 8601, UTC; null: none is kept. */
  lastInAt: z.string().nullable(),
  lastOutAt: z.string().nullable(),
  /** Texts that wait to be sent. */
  waiting: z.number().int(),
  /** Since when the oldest of them waits, ISO 8601, UTC; null: none waits. Omitted by an older store. */
  waitingSince: z.string().nullable().optional(),
  /** Texts of the last 24 hours of which a message may not have arrived. */
  unknown: z.number().int(),
  /** The newest error of a text of the last 24 hours; null: none. */
  lastError: z.string().nullable(),
  /** Why the last attempt to send the oldest waiting text failed; null: no waiting text was tried. */
  waitingReason: z.string().nullable().default(null),
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

export const accountMove = storeRequest({
  subject: "store.account.move",
  clients: ["channel-gateway"],
  doc: "Place the connections of an account on one gateway as long as it is alive. The gateways read the placement with `store.lease.sync` and hand over.",
  input: AccountRef.extend({
    /** The name of the gateway's replica; null: the gateways choose again. */
    replica: z.string().min(1).max(200).nullable(),
    by: z.string(),
  }),
  output: Empty,
});

export const accountOutage = storeRequest({
  subject: "store.account.outage",
  clients: ["channel-gateway"],
  doc: "Tell the owner that an account cannot work (`isDown`), or that it works again: once for each change, where the owner wrote last on another account that works. Nothing is told of an account that works and was not reported. `told` is false while no owner can be reached so.",
  input: AccountRef.extend({
    isDown: z.boolean(),
    text: z.string().max(4_000),
    expiresInMs: z.number().int().positive(),
  }),
  output: z.object({ told: z.boolean() }),
});

export const accountOutages = storeRequest({
  subject: "store.account.outages",
  clients: ["channel-gateway"],
  doc: "List the accounts about which the owner was told that they cannot work.",
  input: Empty,
  output: z.object({ accounts: z.array(AccountRef) }),
});

const AddedAccountSchema = AccountRef.extend({
  /** As in `[channels.<channel>.<account>]`; secrets are named, not contained. */
  settings: z.record(z.string(), z.unknown()),
  /** Another value after each change. */
  revision: z.string(),
});
export type AddedAccount = z.infer<typeof AddedAccountSchema>;

export const accountList = storeRequest({
  subject: "store.account.list",
  clients: ["channel-gateway", "agent-core"],
  doc: "List the accounts that were added while the cluster ran; those of parley.toml are not among them. At most 200.",
  input: Empty,
  output: z.object({ accounts: z.array(AddedAccountSchema) }),
});

export const accountPut = storeRequest({
  subject: "store.account.put",
  clients: ["channel-gateway"],
  doc: "Add an account, or replace its settings. Publishes `account.changed`. CONFLICT above 200 accounts.",
  input: AddedAccountSchema.omit({ revision: true }).extend({
    /** The account's own name on the platform; null: not known. When it changes, the cursors of the connection are forgotten. */
    identity: z.string().nullable(),
    by: z.string(),
  }),
  output: Empty,
});

export const accountRemove = storeRequest({
  subject: "store.account.remove",
  clients: ["channel-gateway"],
  doc: "Remove an added account: its leases end, its cursors and its pause are forgotten, and its waiting texts are dropped. Publishes `account.changed`.",
  input: AccountRef,
  output: Empty,
});
