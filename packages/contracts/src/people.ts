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
