// What a job asks is asked where it delivers, which need not be its own session: whoever may answer it writes there. As conditions of
// statements in which `t` is the turn that asks.

/** The turn is a job's. */
export const isJobs = "t.trust = 'cron'";

/** The turn delivers to the conversation of `address`, a column or parameter of stored addresses; not where either is null. */
export function deliversTo(address: string): string {
  return `coalesce(t.reply_to::jsonb - 'replyToId' = ${address}::text::jsonb - 'replyToId', false)`;
}

/** A job that runs asks somebody of this trust: at `address`, or at any where that is left out. */
export function jobAsks(trust: string, address?: string): string {
  const there = address === undefined ? "" : `AND ${deliversTo(address)}`;
  return `EXISTS (SELECT FROM parley.turns t JOIN parley.questions q ON q.turn_id = t.id
    WHERE t.state = 'running' AND ${isJobs} ${there} AND q.state = 'open' AND q.trust = ${trust} AND q.expires_at > now()
      AND (q.held_until IS NULL OR q.held_until > now()))`;
}
