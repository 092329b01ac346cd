// One PRIVMSG → what the gateway is given. Pure: the time comes in. Who may speak is not decided here.
//
// A nick proves nothing: anybody may take a nick that is free. A contact is therefore `account:<name>` wherever the server says which
// account the sender is logged in to, and that is what belongs into `owners` and `allow_from`. Without an account the contact is the
// bare nick; a bare nick in those lists says: on this server only the right person can have it.
import { createHash } from "node:crypto";
import type { InboundDraft } from "../../channel.ts";
import { nickOf, type IrcLine } from "./line.ts";
import { fold, isChannel, type CaseMapping } from "./names.ts";

export interface Surroundings {
  account: string;
  /** Our nick at the moment. */
  nick: string;
  mapping: CaseMapping;
  /** Names as the settings spell them: a message from `#Agents` belongs to the listed `#agents`. */
  spellings: readonly string[];
}

export type Parsed =
  | { kind: "message"; draft: InboundDraft; at: Date }
  /** Our own words, come back. */
  | { kind: "own" }
  | { kind: "skipped"; reason: string };

const windowMs = 5_000;

export function parse(line: IrcLine, { account, nick, mapping, spellings }: Surroundings, now: Date): Parsed {
  const same = (left: string, right: string): boolean => fold(left, mapping) === fold(right, mapping);
  const spelled = (name: string): string => spellings.find((known) => same(known, name)) ?? fold(name, mapping);

  const [to = "", raw = ""] = line.params;
  const from = nickOf(line.source);
  if (line.command !== "PRIVMSG") return skipped(`nothing is done with ${line.command}`);
  if (from === "" || line.source?.includes("!") !== true) return skipped("a server sent it");
  if (same(from, nick)) return { kind: "own" };
  if (raw.startsWith("\u0001")) return skipped("CTCP");
  const target = to.replace(/^[@+%~&!]+(?=#)/, "");
  const direct = !isChannel(target);
  if (direct && !same(target, nick)) return skipped("for somebody else");
  const spoken = withoutFormatting(raw).trim();
  const text = spoken.replace(addressing(nick), "").trim();
  if (text === "") return skipped("without text");

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
      addressed: direct || addressing(nick).test(spoken),
      text,
      // On IRC an answer shows whom it is for by that person's nick in front of it.
      replyTo: { channel: "irc", account, conversation, ...(direct ? {} : { replyToId: from }) },
    },
  };
}

function skipped(reason: string): Parsed {
  return { kind: "skipped", reason };
}

/** `nick: `, `nick, ` or `@nick ` at the beginning of a line. */
function addressing(nick: string): RegExp {
  const name = nick.replace(/[[\]\\^{|}]/g, "\\$&");
  return new RegExp(`^(?:@${name}(?:[:,]|(?=\\s|$))|${name}[:,])\\s*`, "i");
}

/** Without bold, colours and the rest: mIRC's control codes. */
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

/** The server's id of the message; where it gives none, what was said by whom to whom within five seconds. */
function externalIdOf(line: IrcLine, from: string, target: string, text: string, at: Date): string {
  const id = line.tags.get("msgid") ?? "";
  if (id !== "" && id.length <= 400) return id;
  const window = Math.floor(at.getTime() / windowMs);
  return `sha256:${createHash("sha256").update([id, from, target, text, window].join("\0")).digest("hex")}`;
}
