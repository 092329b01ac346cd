// Who speaks, where it comes from, and how far it is trusted.

/** Where input comes from; decides its priority in a session's queue. */
export const origins = ["user", "subagent", "process", "webhook", "cron", "heartbeat"] as const;
export type Origin = (typeof origins)[number];

/** Smaller is served first. BullMQ runs jobs without a priority before prioritised ones, so 0 is never used. */
export const priorityOf: Record<Origin, number> = {
  user: 1,
  subagent: 2,
  process: 2,
  webhook: 3,
  cron: 4,
  heartbeat: 5,
};

export const contactRoles = ["owner", "user", "guest"] as const;
export type ContactRole = (typeof contactRoles)[number];

/** Only input of equal trust joins into one turn: a person's role, or what else it comes from. */
export function trustOf(from: { role: ContactRole; origin: Origin }): string {
  return from.origin === "user" ? from.role : from.origin;
}

/**
 * Who can answer the approval questions that a message leads to: `sender`, the sender or an owner, wherever they are; `owner`,
 * only an owner at an address where they have spoken before; `none`, nobody.
 */
export const approvalAnswerers = ["sender", "owner", "none"] as const;
export type ApprovalAnswerer = (typeof approvalAnswerers)[number];

/** Of several messages in one turn: the one that reaches most people counts. Without messages: `sender`. */
export function widestAnswerer(each: readonly (ApprovalAnswerer | undefined)[]): ApprovalAnswerer {
  const present = new Set(each.map((one) => one ?? "sender"));
  return approvalAnswerers.find((one) => present.has(one)) ?? "sender";
}

/**
 * Whose words answer what is asked in a turn of this trust; null: nobody's. A person's turn is answered by people of the same trust, in
 * its session; a job's by an owner, where the job delivers. Nobody waits for what else comes by itself.
 */
export function answererOf(trust: string): ContactRole | null {
  if (trust === "cron") return "owner";
  return contactRoles.find((role) => role === trust) ?? null;
}

/** Why nobody can be asked in a turn of this trust; null: somebody can. `delivers`: it answers to a conversation. */
export function whyNobodyAnswers(trust: string, delivers: boolean): string | null {
  if (answererOf(trust) === null) return `nobody waits for this turn, it comes from: ${trust}`;
  return trust === "cron" && !delivers ? "the job delivers to nobody" : null;
}
