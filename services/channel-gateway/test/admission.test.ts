// Authorization, session keys, queue modes and pairing codes: the pure functions.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ContactRole, PeoplePolicy } from "@parley/contracts";
import { queueModes } from "@parley/contracts";
import fc from "fast-check";
import { applyChange } from "../src/ingress/changes.ts";
import { createEvents } from "../src/events.ts";
import { authorizeSender } from "../src/ingress/authorize.ts";
import { decideAccess, needsContact, type Sender } from "../src/ingress/access-policy.ts";
import { parseInput } from "../src/operations/parse-input.ts";
import { newPairingCode, pairingCodeHash } from "../src/operations/pairing-code.ts";
import { joinsMain, queueModeOf, requestedModeOf, sessionKeyOf, type ConversationRef } from "../src/ingress/route.ts";

const modes = fc.constantFrom(...queueModes);
const ids = fc.constantFrom("", "a", "b", "c");
const rooms = fc.constantFrom("#x", "#y", "#z");
const policies: fc.Arbitrary<PeoplePolicy> = fc.record({
  owners: fc.array(ids),
  allow_from: fc.array(ids),
  dm_policy: fc.constantFrom("pairing", "allowlist", "open", "disabled"),
  groups: fc.array(rooms),
  require_mention: fc.boolean(),
});
const senders: fc.Arbitrary<Sender> = fc.record({
  contactId: ids,
  conversation: rooms,
  group: fc.option(rooms, { nil: undefined }),
  direct: fc.boolean(),
  addressed: fc.boolean(),
});
const paired = fc.constantFrom<ContactRole | "blocked" | null>(null, "owner", "user", "guest", "blocked");

// design: 000.29, 004.23
test("admits nobody through empty allow-lists unless the contact is paired", () => {
  fc.assert(
    fc.property(policies, senders, (policy, sender) => {
      fc.pre(policy.dm_policy !== "open" && sender.direct);
      const empty = { ...policy, owners: [], allow_from: [] };
      assert.notEqual(decideAccess(empty, sender, null).verdict, "let_in");
    }),
  );
});

test("grants the owner role only by the settings or by pairing", () => {
  fc.assert(
    fc.property(policies, senders, paired, (policy, sender, contact) => {
      const admission = decideAccess(policy, sender, contact);
      if (admission.verdict !== "let_in" || admission.role !== "owner") return;
      assert.ok(policy.owners.includes(sender.contactId) || contact === "owner");
    }),
  );
});

// design: 000.29, 004.24
test("ignores unlisted groups and applies the settings in listed ones", () => {
  fc.assert(
    fc.property(policies, senders, paired, (policy, sender, contact) => {
      fc.pre(!sender.direct);
      const { verdict } = decideAccess(policy, sender, contact);
      if (verdict === "ignore") return;
      assert.equal(verdict, "let_in", "no pairing codes in groups");
      assert.ok(policy.groups.includes(sender.group ?? sender.conversation));
      assert.ok(sender.addressed || !policy.require_mention);
    }),
  );
});

// design: switch.21
test("never admits a sender without an identity or a blocked sender", () => {
  fc.assert(
    fc.property(policies, senders, (policy, sender) => {
      assert.equal(decideAccess(policy, { ...sender, contactId: "" }, "owner").verdict, "ignore");
      const unlisted = { ...policy, owners: [], allow_from: [] };
      assert.equal(decideAccess(unlisted, sender, "blocked").verdict, "ignore");
    }),
  );
});

test("logs why a message is ignored, once for each reason and place", async () => {
  const logged: { fields: object; message: string }[] = [];
  const log = { info: (fields: object, message: string) => void logged.push({ fields, message }) };
  const counted: unknown[] = [];
  const metrics = { set: () => undefined, count: (...each: unknown[]) => void counted.push(each) };
  const events = createEvents({ metrics, log } as unknown as Parameters<typeof createEvents>[0]);
  const people: PeoplePolicy = {
    owners: ["a"],
    allow_from: [],
    dm_policy: "disabled",
    groups: ["#x"],
    require_mention: true,
  };
  const bus = { request: async () => ({ contact: null }) };
  const deps = { bus, events, settings: { permissions: { pairing_minutes: 10 } } };
  const write = (conversation: string, id: string, direct = false) => {
    const replyTo = { channel: "test", account: "main", conversation };
    const draft = { externalId: "1", conversation, contact: { id }, direct, addressed: false, text: "hi", replyTo };
    const policy = { channel: "test", account: "main", people };
    return authorizeSender(deps as unknown as Parameters<typeof authorizeSender>[0], policy, draft);
  };
  for (const [place, id] of [
    ["#y", "b"],
    ["#y", "c"],
    ["#x", "b"],
    ["#x", "b"],
  ] as const)
    assert.equal(await write(place, id), null);
  assert.equal(await write("b", "b", true), null);
  const about = { channel: "test", account: "main", by: "b" };
  assert.deepEqual(logged, [
    { fields: { ...about, group: "#y", reason: "`groups` does not list the group" }, message: "message ignored" },
    {
      fields: { ...about, group: "#x", reason: "it does not mention the agent, and require_mention is true" },
      message: "message ignored",
    },
    {
      fields: { ...about, group: undefined, reason: 'the account has dm_policy = "disabled"' },
      message: "message ignored",
    },
  ]);
  const count = ["parley_inbound_total", { channel: "test", result: "ignored" }];
  assert.deepEqual(
    counted,
    Array.from({ length: 5 }, () => count),
  );
});

test("logs that the agent was added to a group that is not listed, and not for a direct conversation", async () => {
  const logged: unknown[][] = [];
  const log = { warn: (...line: unknown[]) => void logged.push(line) };
  const deps = { log, events: { inbound: () => undefined } } as unknown as Parameters<typeof applyChange>[0];
  const people: PeoplePolicy = {
    owners: ["a"],
    allow_from: [],
    dm_policy: "pairing",
    groups: ["#x"],
    require_mention: true,
  };
  for (const direct of [true, false]) {
    const replyTo = { channel: "test", account: "main", conversation: "#y" };
    const joined = { externalId: "1", messageId: "1", conversation: "#y", contact: { id: "b" }, direct, replyTo };
    const change = { kind: "membership", joined: true } as const;
    await applyChange(deps, { channel: "test", account: "main", people }, { ...joined, change });
  }
  const about = { channel: "test", account: "main", group: "#y", by: "b" };
  const message = "agent added to a group that the account's `groups` do not list: its messages are ignored";
  assert.deepEqual(logged, [[about, message]]);
});

test("decides independently of the stored contact when the store is not queried", () => {
  fc.assert(
    fc.property(policies, senders, paired, (policy, sender, contact) => {
      fc.pre(!needsContact(policy, sender));
      assert.deepEqual(decideAccess(policy, sender, contact), decideAccess(policy, sender, null));
    }),
  );
});

// design: switch.2, 004.36
test("shares one session among the owner's direct conversations only", () => {
  const where = fc.record({
    channel: fc.constantFrom("telegram", "irc", "http", "hook"),
    account: fc.constantFrom("default", "work"),
    conversation: fc.string({ minLength: 1 }),
    direct: fc.boolean(),
    role: fc.constantFrom<ContactRole>("owner", "user", "guest"),
  });
  const keyOf = (policy: "singleton" | "per_conversation", from: ConversationRef) =>
    sessionKeyOf({ policy, share: [] }, from);
  fc.assert(
    fc.property(where, where, (a, b) => {
      const [keyA, keyB] = [keyOf("singleton", a), keyOf("singleton", b)];
      assert.equal(keyA === "main", a.role === "owner" && a.direct);
      const same = a.channel === b.channel && a.account === b.account && a.conversation === b.conversation;
      if (keyA !== "main" && keyB !== "main") assert.equal(keyA === keyB, same);
      assert.equal(keyOf("per_conversation", a) === keyOf("per_conversation", b), same);
      assert.notEqual(keyOf("per_conversation", a), "main");
    }),
  );
});

// design: 004.36
test("adds groups, other people and webhooks to the owner's session when the settings share it", () => {
  const group = { channel: "telegram", account: "main", conversation: "-1", direct: false, role: "guest" } as const;
  const person = { ...group, conversation: "7", direct: true, role: "user" } as const;
  const joined = (share: ("groups" | "users" | "webhooks")[], policy: "singleton" | "named" = "singleton") => [
    sessionKeyOf({ policy, share }, group) === "main",
    sessionKeyOf({ policy, share }, person) === "main",
    joinsMain({ policy, share }, undefined),
  ];
  assert.deepEqual(joined(["groups"]), [true, false, false]);
  assert.deepEqual(joined(["users"]), [false, true, false]);
  assert.deepEqual(joined(["webhooks"]), [false, false, true]);
  assert.deepEqual(joined(["groups", "users", "webhooks"], "named"), [false, false, false]);
  assert.equal(joinsMain({ policy: "named", share: [] }, "main"), true);
  assert.equal(joinsMain({ policy: "singleton", share: ["webhooks"] }, "own"), false);
});

test("parses a command from the first word, but not a path or text after a space", () => {
  const command = (text: string) => {
    const spoken = parseInput(text);
    return spoken.kind === "command" ? spoken.command : null;
  };
  assert.deepEqual(command("/stop"), { name: "/stop", rest: "" });
  assert.deepEqual(command("/STOP@parley_bot now"), { name: "/stop", rest: "now" });
  assert.deepEqual(command("/queue edit 1 two\nlines "), { name: "/queue", rest: "edit 1 two\nlines" });
  assert.deepEqual(command("/constructor"), { name: "/constructor", rest: "" });
  for (const text of ["stop", " /stop", "/etc/hosts", "/", "// comment", "say /stop", "/1", ""]) {
    assert.deepEqual(parseInput(text), { kind: "message", text });
  }
});

test("parses /steer, /later and /now as messages with a mode, and without text as commands", () => {
  assert.deepEqual(parseInput("/steer go left"), { kind: "message", text: "go left", mode: "steer" });
  assert.deepEqual(parseInput("/later@bot go\nright"), { kind: "message", text: "go\nright", mode: "queue" });
  assert.deepEqual(parseInput("/now /etc"), { kind: "message", text: "/etc", mode: "interrupt" });
  assert.deepEqual(parseInput("/now "), { kind: "command", command: { name: "/now", rest: "" } });
});

// design: switch.3
test("prefers the mode of the message, then the session's, then the settings'; machines queue", () => {
  fc.assert(
    fc.property(modes, fc.option(modes, { nil: undefined }), fc.option(modes), (setting, asked, session) => {
      const exclusive = false;
      assert.equal(
        queueModeOf({ origin: "user", requested: asked, exclusive, session, setting }),
        asked ?? session ?? setting,
      );
      for (const origin of ["webhook", "cron", "heartbeat"] as const) {
        assert.equal(queueModeOf({ origin, requested: asked, exclusive, session, setting }), "queue");
      }
    }),
  );
});

// design: 000.2
test("coalesces messages of others in a shared thread if the settings do, and otherwise queues them", () => {
  fc.assert(
    fc.property(modes, fc.option(modes, { nil: undefined }), fc.boolean(), (setting, asked, album) => {
      const expected = album || setting === "coalesce" ? "coalesce" : "queue";
      assert.equal(requestedModeOf(asked, { shared: true, album, setting }), expected);
      assert.equal(
        requestedModeOf(asked, { shared: false, album, setting }),
        asked ?? (album ? "coalesce" : undefined),
      );
    }),
  );
});

test("queues a message whose caller waits, for every mode of session and settings", () => {
  fc.assert(
    fc.property(modes, fc.option(modes, { nil: undefined }), fc.option(modes), (setting, asked, session) => {
      assert.equal(
        queueModeOf({ origin: "user", requested: asked, exclusive: true, session, setting }),
        asked ?? "queue",
      );
    }),
  );
});

test("generates pairing codes without ambiguous characters and ignores case and separators", () => {
  const codes = Array.from({ length: 500 }, newPairingCode);
  assert.equal(new Set(codes).size, codes.length);
  for (const code of codes) {
    assert.match(code, /^[A-HJ-NP-Z2-9]{4}-[A-HJ-NP-Z2-9]{4}$/);
    assert.equal(pairingCodeHash(` ${code.toLowerCase().replace("-", " ")} `), pairingCodeHash(code));
  }
});
