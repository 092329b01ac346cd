// The line above a person's message that tells the model when and where it was said. It is made of what stands in the log, so
// that it is the same each time the prompt is built; pure.
import {
  isThreadOf,
  mainSessionKey,
  type Message,
  type ParleySettings,
  type Part,
  type Sender,
} from "@parley/contracts";
import type { Policy } from "./policy.ts";

export interface HeadingOptions {
  /** IANA name. */
  timeZone: string;
  /** Names the conversation as the tool `message` wants it. */
  source: boolean;
}

/** Whether messages of a session name their conversation: where one thread has several, or the agent answers by `message`. */
export function namesSource(settings: ParleySettings, policy: Pick<Policy, "output">, sessionKey: string): boolean {
  const { context, session } = settings;
  if (context.source_tags !== "auto") return context.source_tags === "always";
  const several = session.policy === "singleton" && isThreadOf(mainSessionKey, sessionKey);
  return several || policy.output !== "final_text";
}

/** Nothing for the loop's own texts. */
export function heading(message: Message, options: HeadingOptions | undefined): Part[] {
  const { from } = message;
  if (options === undefined || from === undefined) return [];
  const key = `${options.timeZone} ${options.source}`;
  const known = headings.get(message);
  if (known?.key === key) return known.parts;
  const parts = headingOf(message, from, options);
  headings.set(message, { key, parts });
  return parts;
}

/** Long sessions are built into a prompt again and again. */
const headings = new WeakMap<Message, { key: string; parts: Part[] }>();

function headingOf(message: Message, from: Sender, options: HeadingOptions): Part[] {
  const words = [timeIn(options.timeZone, message.createdAt)];
  if (options.source && from.channel !== "internal") words.push(inLine(addressText(from)));
  const name = from.contact.name ?? from.contact.id;
  if (options.source && from.origin === "user" && name !== "") words.push(inLine(name).slice(0, 80));
  if (from.origin !== "user") words.push(from.origin);
  else if (from.role !== "owner") words.push(from.role);
  if (from.forwarded !== undefined) {
    const author = inLine(from.forwarded.from ?? "")
      .trim()
      .slice(0, 80);
    words.push(author === "" ? "forwarded, written by somebody else" : `forwarded from ${author}`);
  }
  // Blocks of one message are read without anything between them.
  return [{ type: "text", text: `[${words.join(" · ")}]\n` }];
}

/** `channel:account:conversation`: what `message` takes as `to`. */
export function addressText(address: { channel: string; account: string; conversation: string }): string {
  return `${address.channel}:${address.account}:${address.conversation}`;
}

/** A name that somebody chose, of a person or of a conversation, cannot end the line or pretend to be part of it. */
function inLine(name: string): string {
  return name.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}[\]·]/gu, " ");
}

const formats = new Map<string, Intl.DateTimeFormat>();

function timeIn(timeZone: string, iso: string): string {
  let format = formats.get(timeZone);
  if (format === undefined) {
    format = new Intl.DateTimeFormat("en-GB", {
      timeZone,
      weekday: "short",
      year: "numeric",
      month: "2-digit",
      day: "2-digit",
      hour: "2-digit",
      minute: "2-digit",
      hourCycle: "h23",
    });
    formats.set(timeZone, format);
  }
  const part = (type: Intl.DateTimeFormatPartTypes, parts: Intl.DateTimeFormatPart[]) =>
    parts.find((each) => each.type === type)?.value ?? "";
  const parts = format.formatToParts(new Date(iso));
  const at = (type: Intl.DateTimeFormatPartTypes) => part(type, parts);
  return `${at("weekday")} ${at("year")}-${at("month")}-${at("day")} ${at("hour")}:${at("minute")} ${timeZone}`;
}
