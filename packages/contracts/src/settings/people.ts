// Limits of each person who writes to the agent.
import { z } from "zod";
import type { PersonLimits as WireLimits } from "../store/person-limits.ts";

/** Limits of one person; 0: no limit. A person is one contact of one account: `parley people limit` changes the limits of one of them. */
const PersonLimits = z
  .strictObject({
    /** Maximum messages within 60 seconds. */
    messages_per_minute: z.number().int().min(0).default(0),
    /** Maximum turns of one day (UTC) that read a message of the person. A message that waits counts as a turn. */
    turns_per_day: z.number().int().min(0).default(0),
    /**
     * US dollars of these turns and their sub-agents, after which no message starts another turn that day. A turn that runs goes on. Calls
     * of a model without a known price cost nothing here.
     */
    usd_per_day: z.number().min(0).default(0),
  })
  .prefault({});

export const PeopleSettings = z
  .strictObject({
    /** By role. `token`: callers of the API with a named token or a sign-in. The owner's own token belongs to `owner`. */
    limits: z
      .strictObject({ owner: PersonLimits, user: PersonLimits, guest: PersonLimits, token: PersonLimits })
      .prefault({}),
  })
  .prefault({});

/** Limits of a role as the store takes them. */
export function personLimitsOf(limits: z.infer<typeof PersonLimits>): WireLimits {
  return {
    messagesPerMinute: limits.messages_per_minute,
    turnsPerDay: limits.turns_per_day,
    usdPerDay: limits.usd_per_day,
  };
}
