// Converts one PRIVMSG to a draft for the gateway. Pure: the time is a parameter. It does not authorize the sender.
//
// A nick does not identify a person, because anybody may take a free nick. A contact is `account:<name>` if the server reports the
// sender's login; use this form in `owners` and `allow_from`. Otherwise the contact is the bare nick. List a bare nick only if the
// server guarantees that nobody else can use it.
import { createHash } from "node:crypto";
import type { InboundDraft } from "../channel.ts";
import { nickOf, type IrcLine } from "./line.ts";
import { fold, isChannel, type CaseMapping } from "./names.ts";

export interface ParseContext {
  account: string;
  /** Our current nick. */
  nick: string;
  mapping: CaseMapping;
  /** Names as spelled in the settings: a message in `#Agents` belongs to the listed `#agents`. */
  spellings: readonly string[];
}

export type Parsed =
  | { kind: "message"; draft: InboundDraft; at: Date }
  /** The echo of our own message. */
  | { kind: "own" }
  | { kind: "skipped"; reason: string };

const windowMs = 5_000;

export function parse(line: IrcLine, { account, nick, mapping, spellings }: ParseContext, now: Date): Parsed {
  const same = (left: string, right: string): boolean => fold(left, mapping) === fold(right, mapping);
  const spelled = (name: string): string => spellings.find((known) => same(known, name)) ?? fold(name, mapping);

  const [to = "", raw = ""] = line.params;
  const from = nickOf(line.source);
  if (line.command !== "PRIVMSG") return skipped(`unsupported command: ${line.command}`);
  if (from === "" || line.source?.includes("!") !== true) return skipped("sent by a server");
  // Servers allow no colon in a nick; with one, the id of somebody without a login would look like that of a login.
  if (from.includes(":")) return skipped("not a nick");
  if (same(from, nick)) return { kind: "own" };
  if (raw.startsWith("\u0001")) return skipped("CTCP");
  const target = to.replace(/^[@+%~&!]+(?=#)/, "");
  const direct = !isChannel(target);
  if (direct && !same(target, nick)) return skipped("addressed to another nick");
  const content = withoutFormatting(raw).trim();
  const text = content.replace(addressing(nick), "").trim();
  if (text === "") return skipped("no text");

  const at = timeOf(line, now);
  const login = line.tags.get("account") ?? "";
  const conversation = spelled(direct ? from : target);
  return {
    kind: "message",
    at,
    draft: {
      externalId: externalIdOf(line, from, target, raw, at),
      conversation,
      contact: { id: spelled(login === "" ? from : `account:${login}`), name: from },
      direct,
      addressed: direct || addressing(nick).test(content),
      text,
      // An IRC answer in a channel begins with the nick of its addressee.
      replyTo: { channel: "irc", account, conversation, ...(direct ? {} : { replyToId: from }) },
    },
  };
}

function skipped(reason: string): Parsed {
  return { kind: "skipped", reason };
}

/** Matches `nick: `, `nick, ` or `@nick ` at the beginning of a line. */
function addressing(nick: string): RegExp {
  const name = nick.replace(/[[\]\\^{|}]/g, "\\$&");
  return new RegExp(`^(?:@${name}(?:[:,]|(?=\\s|$))|${name}[:,])\\s*`, "i");
}

/** Removes mIRC's control codes (bold, colours …). */
function withoutFormatting(text: string): string {
  return text
    .replace(/(\p{Cc})([0-9a-f]{6}(?:,[0-9a-f]{6})?)/giu, (whole, control) => (control === "\u0004" ? "" : whole))
    .replace(/(\p{Cc})(\d{1,2}(?:,\d{1,2})?)/gu, (whole, control) => (control === "\u0003" ? "" : whole))
    .replace(/(?!\t)\p{Cc}/gu, "");
}

function timeOf(line: IrcLine, now: Date): Date {
  const at = new Date(line.tags.get("time") ?? "");
  return Number.isNaN(at.getTime()) ? now : at;
}

/** The server's message id; without one, a hash of sender, target, text and a time window of 5 s. */
function externalIdOf(line: IrcLine, from: string, target: string, text: string, at: Date): string {
  const id = line.tags.get("msgid") ?? "";
  if (id !== "" && id.length <= 400) return id;
  const window = Math.floor(at.getTime() / windowMs);
  return `sha256:${createHash("sha256").update([id, from, target, text, window].join("\0")).digest("hex")}`;
}
