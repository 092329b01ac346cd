import assert from "node:assert/strict";
import { test } from "node:test";
import type { InboundDraft } from "../src/channels/channel.ts";
import { parseLine } from "../src/channels/irc/line.ts";
import { parse, type Parsed, type ParseContext } from "../src/channels/irc/parse.ts";

const here: ParseContext = {
  account: "main",
  nick: "parley",
  mapping: "rfc1459",
  spellings: ["#Agents", "Ann", "account:ann"],
};
const now = new Date("2026-11-21T12:00:00Z");

function read(text: string, at = now): Parsed {
  const line = parseLine(text);
  assert.ok(line !== null);
  return parse(line, here, at);
}

function draftOf(text: string, at = now): InboundDraft {
  const parsed = read(text, at);
  if (parsed.kind !== "message") assert.fail(JSON.stringify(parsed));
  return parsed.draft;
}

function reasonOf(text: string): string {
  const parsed = read(text);
  if (parsed.kind !== "skipped") assert.fail("was not skipped");
  return parsed.reason;
}

test("treats a private message as addressed and replies to its nick", () => {
  assert.deepEqual(draftOf("@msgid=m1 :bob!b@h PRIVMSG Parley :hi"), {
    externalId: "m1",
    conversation: "bob",
    contact: { id: "bob", name: "bob" },
    direct: true,
    addressed: true,
    text: "hi",
    replyTo: { channel: "irc", account: "main", conversation: "bob" },
  });
});

test("treats a channel line as addressed when it begins with our nick, and removes the nick", () => {
  const said = (text: string): [boolean, string] => {
    const draft = draftOf(`:bob!b@h PRIVMSG #agents :${text}`);
    return [draft.addressed, draft.text];
  };
  assert.deepEqual(said("parley: /stop"), [true, "/stop"]);
  assert.deepEqual(said("PARLEY, hi"), [true, "hi"]);
  assert.deepEqual(said("@parley hi"), [true, "hi"]);
  assert.deepEqual(said("parleys: hi"), [false, "parleys: hi"]);
  assert.deepEqual(said("parley is nice"), [false, "parley is nice"]);
  assert.deepEqual(said("ask parley: hi"), [false, "ask parley: hi"]);
  assert.deepEqual(said("\u0002parley\u000f: \u000304,12red"), [true, "red"]);
});

test("uses the spelling of the settings for names and the sender's nick for the reply", () => {
  const draft = draftOf(":ANN!a@h PRIVMSG @#AGENTS :parley: hi");
  assert.equal(draft.conversation, "#Agents");
  assert.equal(draft.contact.id, "Ann");
  assert.equal(draft.replyTo.replyToId, "ANN");
});

test("identifies a logged-in sender by account and others by nick", () => {
  assert.equal(draftOf("@account=Ann :guest7!b@h PRIVMSG parley :hi").contact.id, "account:ann");
  assert.equal(draftOf(":ann!b@h PRIVMSG parley :hi").contact.id, "Ann");
});

test("treats the same text within 5 s as the same message when there is no message id", () => {
  const later = (ms: number): Date => new Date(now.getTime() + ms);
  const id = (text: string, at: Date): string => draftOf(`:ann!a@h PRIVMSG parley :${text}`, at).externalId;
  assert.equal(id("hi", now), id("hi", later(4_000)));
  assert.notEqual(id("hi", now), id("hi", later(5_000)));
  assert.notEqual(id("hi", now), id("ho", now));
  assert.match(id("hi", now), /^sha256:[0-9a-f]{64}$/);
});

test("uses the server's time of a message", () => {
  const parsed = read("@time=2026-11-21T11:00:00.000Z :ann!a@h PRIVMSG parley :hi");
  assert.equal(parsed.kind === "message" ? parsed.at.toISOString() : "", "2026-11-21T11:00:00.000Z");
});

test("skips notices, CTCP, server messages, our own echo and empty lines", () => {
  assert.match(reasonOf(":ann!a@h NOTICE parley :hi"), /NOTICE/);
  assert.match(reasonOf(":ann!a@h PRIVMSG parley :\u0001VERSION\u0001"), /CTCP/);
  assert.match(reasonOf(":ann!a@h PRIVMSG #agents :\u0001ACTION waves\u0001"), /CTCP/);
  assert.match(reasonOf(":irc.server PRIVMSG parley :hi"), /server/);
  assert.match(reasonOf(":ann!a@h PRIVMSG parley :\u0002\u000f "), /no text/);
  assert.match(reasonOf(":ann!a@h PRIVMSG $$* :hi all"), /another nick/);
  assert.equal(read(":Parley!p@h PRIVMSG ann :hi").kind, "own");
});
