// Who leads, and who owns a connection.
import { z } from "zod";
import { request } from "../contract.ts";
import { Empty, LeaseRef } from "./shared.ts";

export const leadershipAcquire = request({
  subject: "store.leadership.acquire",
  server: "store",
  clients: ["agent-core"],
  doc: "Take the leadership over: waits for running writes, then raises the epoch. Everything with an older epoch is refused from then on.",
  input: z.object({
    opId: z.uuid(),
    holder: z.string(),
    /** The secret that signs the grants of the new epoch: base64url of 32 random bytes. Left out: it signs none. */
    grantKey: z
      .string()
      .regex(/^[A-Za-z0-9_-]{43}$/)
      .optional(),
  }),
  output: z.object({ epoch: z.number().int() }),
});

export const leaseAcquire = request({
  subject: "store.lease.acquire",
  server: "store",
  clients: ["channel-gateway"],
  doc: "Own a connection that must have one owner. Granted when nobody holds it or the holder's time is over; each grant has a higher fence.",
  input: z.object({ name: z.string(), owner: z.string(), ttlMs: z.number().int().positive() }),
  output: z.object({
    granted: z.boolean(),
    fence: z.number().int(),
    /** Saved with the last message that came over this connection. */
    cursor: z.string().nullable(),
    holder: z.string().nullable(),
  }),
});

export const leaseRenew = request({
  subject: "store.lease.renew",
  server: "store",
  clients: ["channel-gateway"],
  doc: "Keep the connection for another `ttlMs`. FENCED when somebody else has it.",
  input: LeaseRef.extend({ ttlMs: z.number().int().positive() }),
  output: Empty,
});

export const leaseRelease = request({
  subject: "store.lease.release",
  server: "store",
  clients: ["channel-gateway"],
  doc: "Give the connection up at once; standbys hear `lease.released`.",
  input: LeaseRef,
  output: Empty,
});
