// Who may speak, as what and in which thread: the pure part.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ContactRole } from "@parley/contracts";
import { queueModes } from "@parley/contracts";
import fc from "fast-check";
import { admit, dependsOnPairing, type PeoplePolicy, type Sender } from "../src/admit.ts";
import { readSpoken } from "../src/commands/spoken.ts";
import { queueModeOf } from "../src/queue-mode.ts";
import { newPairingCode, pairingCodeHash } from "../src/pairing-code.ts";
import { sessionKeyOf } from "../src/route.ts";

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
test("an empty allow-list lets nobody in, whatever else is set, but those let in by pairing", () => {
  fc.assert(
    fc.property(policies, senders, (policy, sender) => {
      fc.pre(policy.dm_policy !== "open" && sender.direct);
      const empty = { ...policy, owners: [], allow_from: [] };
      assert.notEqual(admit(empty, sender, null).verdict, "let_in");
    }),
  );
});

test("nobody becomes an owner but by the settings or by pairing", () => {
  fc.assert(
    fc.property(policies, senders, paired, (policy, sender, contact) => {
      const admission = admit(policy, sender, contact);
      if (admission.verdict !== "let_in" || admission.role !== "owner") return;
      assert.ok(policy.owners.includes(sender.contactId) || contact === "owner");
    }),
  );
});

// design: 000.29, 004.24
test("a group that is not listed is never heard, a listed one only as the settings say", () => {
  fc.assert(
    fc.property(policies, senders, paired, (policy, sender, contact) => {
      fc.pre(!sender.direct);
      const { verdict } = admit(policy, sender, contact);
      if (verdict === "ignore") return;
      assert.equal(verdict, "let_in", "no pairing codes in groups");
      assert.ok(policy.groups.includes(sender.group ?? sender.conversation));
      assert.ok(sender.addressed || !policy.require_mention);
    }),
  );
});

// design: switch.21
test("a sender without an identity and one who is blocked are never let in", () => {
  fc.assert(
    fc.property(policies, senders, (policy, sender) => {
      assert.equal(admit(policy, { ...sender, contactId: "" }, "owner").verdict, "ignore");
      const unlisted = { ...policy, owners: [], allow_from: [] };
      assert.equal(admit(unlisted, sender, "blocked").verdict, "ignore");
    }),
  );
});

test("where the store is not asked, its answer would change nothing", () => {
  fc.assert(
    fc.property(policies, senders, paired, (policy, sender, contact) => {
      fc.pre(!dependsOnPairing(policy, sender));
      assert.deepEqual(admit(policy, sender, contact), admit(policy, sender, null));
    }),
  );
});

// design: switch.2
test("only the owner's direct conversations share a thread; every other conversation has a key of its own", () => {
  const where = fc.record({
    channel: fc.constantFrom("telegram", "irc", "http", "hook"),
    account: fc.constantFrom("default", "work"),
    conversation: fc.string({ minLength: 1 }),
    direct: fc.boolean(),
    role: fc.constantFrom<ContactRole>("owner", "user", "guest"),
  });
  fc.assert(
    fc.property(where, where, (a, b) => {
      const [keyA, keyB] = [sessionKeyOf("singleton", a), sessionKeyOf("singleton", b)];
      assert.equal(keyA === "main", a.role === "owner" && a.direct);
      const same = a.channel === b.channel && a.account === b.account && a.conversation === b.conversation;
      if (keyA !== "main" && keyB !== "main") assert.equal(keyA === keyB, same);
      assert.equal(sessionKeyOf("per_conversation", a) === sessionKeyOf("per_conversation", b), same);
      assert.notEqual(sessionKeyOf("per_conversation", a), "main");
    }),
  );
});

test("commands are read from the first word; paths and words after a space are not commands", () => {
  const command = (text: string) => {
    const spoken = readSpoken(text);
    return spoken.kind === "command" ? spoken.command : null;
  };
  assert.deepEqual(command("/stop"), { name: "/stop", rest: "" });
  assert.deepEqual(command("/STOP@parley_bot now"), { name: "/stop", rest: "now" });
  assert.deepEqual(command("/queue edit 1 two\nlines "), { name: "/queue", rest: "edit 1 two\nlines" });
  assert.deepEqual(command("/constructor"), { name: "/constructor", rest: "" });
  for (const text of ["stop", " /stop", "/etc/hosts", "/", "// comment", "say /stop", "/1", ""]) {
    assert.deepEqual(readSpoken(text), { kind: "message", text });
  }
});

test("/steer, /later and /now are messages that say when; without a text they are commands", () => {
  assert.deepEqual(readSpoken("/steer go left"), { kind: "message", text: "go left", mode: "steer" });
  assert.deepEqual(readSpoken("/later@bot go\nright"), { kind: "message", text: "go\nright", mode: "queue" });
  assert.deepEqual(readSpoken("/now /etc"), { kind: "message", text: "/etc", mode: "interrupt" });
  assert.deepEqual(readSpoken("/now "), { kind: "command", command: { name: "/now", rest: "" } });
});

// design: switch.3
test("a message's own mode wins over the session's, that over the settings'; machines have no say", () => {
  fc.assert(
    fc.property(modes, fc.option(modes, { nil: undefined }), fc.option(modes), (setting, asked, session) => {
      const exclusive = false;
      assert.equal(queueModeOf({ origin: "user", asked, exclusive, session, setting }), asked ?? session ?? setting);
      for (const origin of ["webhook", "cron", "heartbeat"] as const) {
        assert.equal(queueModeOf({ origin, asked, exclusive, session, setting }), "queue");
      }
    }),
  );
});

test("queues a message whose caller waits when it names no mode, for every mode of session and settings", () => {
  fc.assert(
    fc.property(modes, fc.option(modes, { nil: undefined }), fc.option(modes), (setting, asked, session) => {
      assert.equal(queueModeOf({ origin: "user", asked, exclusive: true, session, setting }), asked ?? "queue");
    }),
  );
});

test("a pairing code has no signs that are mistaken for each other and is read as people type it", () => {
  const codes = Array.from({ length: 500 }, newPairingCode);
  assert.equal(new Set(codes).size, codes.length);
  for (const code of codes) {
    assert.match(code, /^[A-HJ-NP-Z2-9]{4}-[A-HJ-NP-Z2-9]{4}$/);
    assert.equal(pairingCodeHash(` ${code.toLowerCase().replace("-", " ")} `), pairingCodeHash(code));
  }
});
