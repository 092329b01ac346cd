// Results of the fake's methods, and the checks that several methods share.
import { z } from "zod";
import type { SlackState } from "./state.ts";

export type MethodResult =
  | { ok: true; body: Record<string, unknown> }
  | { ok: false; error: string; waitSeconds?: number; needed?: string };
export type Method = (parameters: Record<string, unknown>, state: SlackState) => MethodResult;

export const done = (body: Record<string, unknown> = {}): MethodResult => ({ ok: true, body });
export const refused = (error: string): MethodResult => ({ ok: false, error });

/** A value that a form delivers as JSON text. */
export const json = <T extends z.ZodType>(schema: T) =>
  z.preprocess((value): unknown => {
    if (typeof value !== "string") return value;
    try {
      return JSON.parse(value);
    } catch {
      return value;
    }
  }, schema);

const timestamp = /^\d{10}\.\d{6}$/;

/** The error of a conversation that cannot be written to, or null. */
export function closedBecause(channel: string, threadTs: string | undefined, state: SlackState): string | null {
  const reason = state.closed.get(channel);
  if (reason !== undefined) return reason;
  if (!/^[CDGU][A-Z0-9]{2,}$/.test(channel)) return "channel_not_found";
  if (threadTs === undefined) return null;
  if (!timestamp.test(threadTs)) return "invalid_arguments";
  return state.exists(channel, threadTs) ? null : "cannot_reply_to_message";
}
