// Roles and origins of input, the trust derived from them, and the rights of API tokens.
import { z } from "zod";

/** Where input comes from; decides its priority in a session's queue. */
export const origins = ["user", "subagent", "process", "webhook", "cron", "heartbeat"] as const;
export type Origin = (typeof origins)[number];

/** Lower values run first. BullMQ runs jobs without a priority before prioritised ones, so 0 is never used. */
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

/**
 * The trust of input: a person's role, also for jobs of people other than the owner; otherwise the origin. Only input of equal trust
 * shares a turn.
 */
export const trustLevels = [...contactRoles, "subagent", "process", "webhook", "cron", "heartbeat"] as const;
export type TrustLevel = (typeof trustLevels)[number];

export const TrustLevelSchema = z.enum(trustLevels);

export function trustLevel(from: { role: ContactRole; origin: Origin }): TrustLevel {
  if (from.origin === "cron" && from.role !== "owner") return from.role;
  return from.origin === "user" ? from.role : from.origin;
}

/**
 * Who can answer the approval questions that a message leads to. `sender`: the sender or an owner, anywhere. `sender_each_call`: the
 * same, and every tool call of the message's turn and of its sub-agents needs an answer, also where the rules allow it.
 * `owner`: only an owner, at an address they have used before. `none`: nobody.
 */
export const approvalAnswerers = ["sender_each_call", "sender", "owner", "none"] as const;
export type ApprovalAnswerer = (typeof approvalAnswerers)[number];

/** The reason of an approval question about a call that the rules allow. */
export const reviewReason = "The program that sent the message reviews each call; the rules allow this one.";

/** The widest value of several messages in one turn. Without messages: `sender`. */
export function widestAnswerer(each: readonly (ApprovalAnswerer | undefined)[]): ApprovalAnswerer {
  const present = new Set(each.map((one) => one ?? "sender"));
  return approvalAnswerers.find((one) => present.has(one)) ?? "sender";
}

/**
 * The role whose answers count in a turn of this trust; null: no person can answer. People of the same trust answer a person's turn, in
 * its session; an owner answers a job's turn, where the job delivers. No person waits for turns of other origins.
 */
export function answererRole(trust: TrustLevel): ContactRole | null {
  if (trust === "cron") return "owner";
  return contactRoles.find((role) => role === trust) ?? null;
}

/** Why no person can answer questions of a turn with this trust; null: a person can. `delivers`: the answer goes to a conversation. */
export function noAnswererReason(trust: TrustLevel, delivers: boolean): string | null {
  if (answererRole(trust) === null) return `no person waits for this turn (origin: ${trust})`;
  return trust === "cron" && !delivers ? "the job has no delivery address" : null;
}

/**
 * `talk`: send messages, and stop them. `read`: read sessions, documents, settings and the state. `approve`: decide approvals. `admin`:
 * everything, including the other three.
 */
export const apiScopes = ["talk", "read", "approve", "admin"] as const;
export const ApiScopeSchema = z.enum(apiScopes);
export type ApiScope = z.infer<typeof ApiScopeSchema>;

/** Whether the scopes include the right to do what requires `wanted`. */
export function includesScope(scopes: readonly ApiScope[], wanted: ApiScope): boolean {
  return scopes.includes("admin") || scopes.includes(wanted);
}
