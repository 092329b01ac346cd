// Leadership and ownership of connections.
import { z } from "zod";
import { Empty, LeaseRef, storeRequest } from "./shared.ts";

export const leadershipAcquire = storeRequest({
  subject: "store.leadership.acquire",
  clients: ["agent-core"],
  doc: "Take over the leadership: waits for running writes, then raises the epoch. Requests with an older epoch are refused from then on. Nothing changes if the epoch is not `after`: a request that the store receives late, after its sender has given up, takes the leadership from nobody.",
  input: z.object({
    opId: z.uuid(),
    holder: z.string(),
    /** The newest epoch that the sender knows. Omitted by an older agent-core: the epoch is raised in any case. */
    after: z.number().int().optional(),
    /** The secret that signs the grants of the new epoch: base64url of 32 random bytes. Omitted: the epoch has no grants. */
    grantKey: z
      .string()
      .regex(/^[A-Za-z0-9_-]{43}$/)
      .optional(),
  }),
  output: z.object({
    epoch: z.number().int(),
    /** True: nothing changed, because `epoch` is not `after`. Omitted: the epoch of the holder has begun. */
    unchanged: z.literal(true).optional(),
  }),
});

export const leaseSync = storeRequest({
  subject: "store.lease.sync",
  clients: ["channel-gateway"],
  doc: "Renew all leases of a replica, acquire others that nobody holds, and record that the replica is alive. A replica with no `names` leaves.",
  input: z.object({
    /** The process instance. */
    owner: z.string(),
    ttlMs: z.number().int().positive(),
    /** The leases that the replica can hold. */
    names: z.array(z.string()).max(1_000),
    held: z.array(LeaseRef).max(1_000),
    acquire: z.array(z.string()).max(1_000),
  }),
  output: z.object({
    /** Leases of `held` that were extended by `ttlMs`; another replica holds the others. */
    renewed: z.array(z.string()),
    granted: z.array(
      z.object({
        name: z.string(),
        fence: z.number().int(),
        /** The cursor saved with the last message of this connection. */
        cursor: z.string().nullable(),
      }),
    ),
    /** When the next lease of `acquire` expires unless its holder renews it; null: nobody else holds one. */
    expiresInMs: z.number().int().nullable(),
    /** The live replicas, in the order of their owners. The leases of a moved account are only in the names of its gateway while that is alive. */
    members: z.array(z.object({ owner: z.string(), names: z.array(z.string()) })),
  }),
});

export const leaseAcquire = storeRequest({
  subject: "store.lease.acquire",
  clients: ["channel-gateway"],
  doc: "For gateways of the version before, like `store.lease.renew`: acquire a connection that must have exactly one owner. Granted when it has no holder or the holder's lease has expired; each grant has a higher fence.",
  input: z.object({ name: z.string(), owner: z.string(), ttlMs: z.number().int().positive() }),
  output: z.object({
    granted: z.boolean(),
    fence: z.number().int(),
    /** The cursor saved with the last message of this connection. */
    cursor: z.string().nullable(),
    holder: z.string().nullable(),
  }),
});

export const leaseRenew = storeRequest({
  subject: "store.lease.renew",
  clients: ["channel-gateway"],
  doc: "Extend the lease by `ttlMs`. FENCED when another replica holds it.",
  input: LeaseRef.extend({ ttlMs: z.number().int().positive() }),
  output: Empty,
});

export const leaseCheckpoint = storeRequest({
  subject: "store.lease.checkpoint",
  clients: ["channel-gateway"],
  doc: "Save the cursor of a connection without a message: after a command, a button, or input that is ignored. FENCED when another replica holds it.",
  input: LeaseRef.extend({ cursor: z.string() }),
  output: Empty,
});

export const leaseRelease = storeRequest({
  subject: "store.lease.release",
  clients: ["channel-gateway"],
  doc: "Release the connection immediately; other replicas receive `lease.released`.",
  input: LeaseRef,
  output: Empty,
});
