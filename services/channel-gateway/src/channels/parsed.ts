// What an adapter has read from an update of its platform, and how it is passed to the gateway.
import type { LogFields } from "@parley/chassis";
import { WireError } from "@parley/contracts";
import type { z } from "zod";
import type { ChannelHost, InboundChange, InboundDraft, Position } from "./channel.ts";

export type ParsedInput = { kind: "message"; draft: InboundDraft } | { kind: "change"; change: InboundChange };
export type Skipped = { kind: "skipped"; reason: string };
export type Parsed = ParsedInput | Skipped;

/** The longest name of a person that is passed on. */
const maxNameChars = 200;

export function skipped(reason: string): Skipped {
  return { kind: "skipped", reason };
}

/** An update whose form is not the platform's. */
export function invalid(what: string, { issues: [issue] }: z.ZodError): Skipped {
  return skipped(`invalid ${what} at ${issue?.path.map(String).join(".") ?? ""}: ${issue?.message ?? ""}`);
}

/** A name that is fit to be shown; undefined for an empty one. */
export function shownName(name: string | null | undefined): string | undefined {
  return name?.slice(0, maxNameChars).toWellFormed() || undefined;
}

/** A person by the platform's immutable id. A name is shown and never decides anything. */
export function contactOf(id: string, name: string | null | undefined): InboundDraft["contact"] {
  const shown = shownName(name);
  return shown === undefined ? { id } : { id, name: shown };
}

/** A time in milliseconds since 1970; nothing for a time that is not valid. */
export function sentAtOf(ms: number | undefined): Pick<InboundDraft, "sentAt"> {
  const time = new Date(ms ?? Number.NaN);
  return Number.isNaN(time.getTime()) ? {} : { sentAt: time.toISOString() };
}

/** That a message was forwarded, and the original author as far as the platform names them. */
export function forwardedFrom(author: string | undefined): Pick<InboundDraft, "forwarded"> {
  const from = shownName(author);
  return { forwarded: from === undefined ? {} : { from } };
}

/** The message that a message replies to; nothing for one without a text. */
export function quoteOf(
  text: string | undefined,
  { author, ofAgent = false, ofSender = false }: { author: string | undefined; ofAgent?: boolean; ofSender?: boolean },
): Pick<InboundDraft, "quote"> {
  if (text === undefined || text === "") return {};
  const by = { ...(ofAgent ? { ofAgent } : {}), ...(ofSender ? { ofSender } : {}) };
  return { quote: { text, ...(author === undefined ? {} : { author }), ...by } };
}

type Place = Pick<InboundDraft, "conversation" | "group" | "contact" | "direct" | "replyTo">;

/** A change of an earlier message, where and by whom `place` says; it may contain more, such as a draft. */
export function changeOf(
  { conversation, group, contact, direct, replyTo }: Place,
  change: Pick<InboundChange, "externalId" | "messageId" | "change">,
): { kind: "change"; change: InboundChange } {
  const place = { conversation, ...(group === undefined ? {} : { group }), contact, direct, replyTo };
  return { kind: "change", change: { ...place, ...change } };
}

/** Whether both are parts of an album. Albums of one person that arrive together count as one, because they are answered together. */
export function isSameAlbum(one: { kind: string; draft?: InboundDraft }, other: typeof one): boolean {
  const [mine, theirs] = [one.draft, other.draft];
  if (mine?.album !== true || theirs?.album !== true) return false;
  return mine.conversation === theirs.conversation && mine.contact.id === theirs.contact.id;
}

export function idOf(parsed: ParsedInput): string {
  return parsed.kind === "message" ? parsed.draft.externalId : parsed.change.externalId;
}

/** Passes input to the gateway. Rejects like `accept`. */
export async function store(host: ChannelHost, parsed: ParsedInput, position?: Position) {
  return parsed.kind === "message" ? host.accept(parsed.draft, position) : host.change(parsed.change, position);
}

/**
 * The result of passing something to the gateway; null, with a log line, when it can never be stored: a repetition would be refused again
 * and block everything behind it. Rejects when it must be passed again.
 */
export async function skipUnstorable<Result>(
  log: ChannelHost["log"],
  about: LogFields,
  pass: () => Promise<Result>,
): Promise<Result | null> {
  try {
    return await pass();
  } catch (error) {
    if (!WireError.is(error, "INVALID_INPUT", "TOO_LARGE")) throw error;
    log.error({ ...about, code: error.code, reason: error.message }, "input skipped: it can never be stored");
    return null;
  }
}
