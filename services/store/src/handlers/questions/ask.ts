// SQL conditions for questions of jobs. A job's question is sent to its delivery address, which need not be its own session, so the
// answer arrives there. In these conditions `t` is the turn with the question.

/** The turn belongs to a job. */
export const isJobs = "t.trust = 'cron'";

/** The turn delivers to the conversation of `address`, a column or parameter of stored addresses; false if either is null. */
export function deliversTo(address: string): string {
  // The rest of an address can differ with each message.
  const place = (stored: string) =>
    ["channel", "account", "conversation"].map((key) => `${stored}::jsonb ->> '${key}'`);
  return `coalesce((${place("t.reply_to").join(", ")}) = (${place(`${address}::text`).join(", ")}), false)`;
}

/** A running job has an open question for people of this trust, at `address` or, if left out, anywhere. */
export function askFromJob(trust: string, address?: string): string {
  const there = address === undefined ? "" : `AND ${deliversTo(address)}`;
  return `EXISTS (SELECT FROM parley.turns t JOIN parley.questions q ON q.turn_id = t.id
    WHERE t.state = 'running' AND ${isJobs} ${there} AND q.state = 'open' AND q.trust = ${trust} AND q.expires_at > now()
      AND (q.held_until IS NULL OR q.held_until > now()))`;
}
