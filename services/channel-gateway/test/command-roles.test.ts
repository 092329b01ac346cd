// Commands of users and guests, on a real store: what they may change in a group's session and in other people's turns.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, beforeEach, test } from "node:test";
import fc from "fast-check";
import { Client } from "pg";
import type { Bus } from "@parley/bus";
import { parseSettings } from "@parley/chassis";
import { slashCommands as commands, store, type ContactRole, type InboundMessage } from "@parley/contracts";
import type { OperationDeps, Speaker } from "../src/operations/operation.ts";
import { runCommand } from "../src/operations/registry.ts";
import { SessionService } from "../src/operations/session-service.ts";
import { SessionDirectory } from "../src/live/session-directory.ts";
import { startGatewayStack, type GatewayStack } from "./support/stack.ts";

let stack: GatewayStack;
let bus: Bus;
let database: Client;
let deps: OperationDeps;
let letGo: () => void = () => undefined;
let rooms = 0;
let room: string;

before(async () => {
  stack = await startGatewayStack();
  bus = await stack.stack.bus("channel-gateway");
  database = new Client({ connectionString: stack.stack.postgres.ownerUrl });
  await database.connect();
  const settings = parseSettings('[session]\npolicy = "per_conversation"\n[queue]\nmode = "coalesce"', "test");
  const sessions = new SessionDirectory(bus);
  deps = {
    bus,
    sessions,
    settings,
    acts: new SessionService({ bus, sessions, settings }),
    cancel: (what) => bus.request(store.turnCancel, what),
    say: () => assert.fail("a command sent a message to the agent"),
    look: () => undefined,
    channels: {
      list: () => [],
      peopleOf: () => null,
      require: () => undefined,
      hasConnection: () => false,
      check: async () => null,
      add: () => assert.fail("a command added an account"),
      remove: () => assert.fail("a command removed an account"),
    },
    originOf: () => "default",
    checkSettings: () => [],
  };
});
after(async () => {
  letGo();
  await database.end();
  await stack[Symbol.asyncDispose]();
});
beforeEach(() => {
  letGo();
  room = `room-${++rooms}`;
});

type Person = Pick<Speaker, "role" | "contact">;
const person = (role: ContactRole, id: string): Person => ({ role, contact: { id } });
const owner = person("owner", "1");
const user = person("user", "2");
const guest = person("guest", "66");
const otherGuest = person("guest", "67");

const inRoom = (): Pick<Speaker, "route" | "conversation" | "direct"> => ({
  route: `test:main:${room}`,
  conversation: room,
  direct: false,
});

async function say(from: Person, text: string): Promise<void> {
  const { route, conversation, direct } = inRoom();
  const message: InboundMessage = {
    channel: "test",
    account: "main",
    externalId: randomUUID(),
    conversation,
    ...from,
    origin: "user",
    direct,
    parts: [{ type: "text", text }],
    replyTo: null,
    mode: "queue",
  };
  await bus.request(store.inboxPut, { message, sessionKey: route });
}

/** `ref`: of the command's message. */
function command(from: Person, text: string, where = inRoom(), ref = randomUUID() as string): Promise<string> {
  const [name = "", ...words] = text.split(" ");
  const speaker = { ...where, ...from, channel: "test", account: "main", replyTo: null, ref };
  return runCommand(deps, { name, rest: words.join(" ").trim() }, speaker);
}

/** Runs a turn of this person in the room until the next test; resolves with its id. */
async function running(from: Person): Promise<string> {
  const begun = Promise.withResolvers<string>();
  const goOn = Promise.withResolvers<void>();
  letGo = goOn.resolve;
  const work = `work in ${room}`;
  stack.agent.script = async (said, { turnId }) => {
    if (said !== work) return { deltas: [said] };
    begun.resolve(turnId);
    await goOn.promise;
    return { deltas: [said] };
  };
  await say(from, work);
  return begun.promise;
}

async function isStopped(turnId: string): Promise<boolean> {
  const { cancelRequested } = await bus.request(store.turnGet, { turnId });
  return cancelRequested;
}

async function rows(text: string): Promise<unknown[]> {
  const { rows: found } = await database.query<Record<string, unknown>>(text);
  return found;
}

/** Everything that commands can change, except messages of `guest`. */
async function state(): Promise<unknown> {
  return {
    sessions: await rows(
      `SELECT id, key, title, overrides, status, view FROM parley.sessions WHERE key NOT LIKE 'test:main:dm-66%' ORDER BY id`,
    ),
    bindings: await rows(
      `SELECT route, session_id FROM parley.bindings WHERE route <> 'test:main:dm-66' ORDER BY route`,
    ),
    turns: await rows("SELECT id, state, cancel_requested FROM parley.turns ORDER BY id"),
    inbox: await rows(
      `SELECT id, state, parts, ready_at FROM parley.inbox WHERE sender::jsonb -> 'contact' ->> 'id' <> '66' ORDER BY id`,
    ),
    settings: await rows("SELECT * FROM parley.mcp_switches"),
  };
}

test("changes nothing of others when a guest gives any command in a group or directly", async () => {
  const turnId = await running(owner);
  for (const from of [owner, user, otherGuest]) await say(from, `waits: ${from.contact.id}`);
  // Listing sessions sets their titles.
  await bus.request(store.sessionList, { limit: 1 });
  const before = await state();
  const words = [
    "all",
    "new",
    "name",
    "fork",
    "resume",
    "list",
    "cancel",
    "edit",
    "mode",
    "reject",
    "1",
    "2",
    "X",
    "on",
    "always",
  ];
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...commands.map(({ name }) => name)),
      fc.array(fc.constantFrom(...words), { maxLength: 3 }),
      fc.boolean(),
      async (name, typed, direct) => {
        const where = direct ? { route: "test:main:dm-66", conversation: "dm-66", direct } : inRoom();
        await command(guest, `${name} ${typed.join(" ")}`, where);
        assert.deepEqual(await state(), before);
      },
    ),
    { numRuns: 300 },
  );
  assert.equal(await isStopped(turnId), false);
});

test("stops only a guest's own turn and queued messages when they send /stop in a group", async () => {
  const turnId = await running(guest);
  await say(guest, "mine waits");
  await say(otherGuest, "theirs waits");
  assert.equal(await command(otherGuest, "/stop"), "1 queued message was cancelled.");
  assert.equal(await isStopped(turnId), false);
  assert.match(await command(guest, "/stop"), /^Stopped\. 1 queued message was cancelled\.$/);
  assert.equal(await isStopped(turnId), true);
});

test("leaves another user's turn alone when a user sends /stop or /stop all in a group", async () => {
  const turnId = await running(person("user", "3"));
  assert.equal(await command(user, "/stop"), "You have no running turn.");
  assert.equal(await command(user, "/stop all"), "/stop all is for the owner only.");
  assert.equal(await isStopped(turnId), false);
  await command(owner, "/stop");
  assert.equal(await isStopped(turnId), true);
});

test("allows users to start and name a session in a group, and guests in a direct conversation", async () => {
  await running(owner);
  letGo();
  assert.match(await command(user, "/new Pears"), /New session started: "Pears"/);
  assert.match(await command(user, "/session name Plums"), /This session is now named "Plums"/);
  for (const text of ["/new", "/session name x", "/session fork", "/session new"]) {
    assert.match(await command(guest, text), /^\/\S+( \w+)? is not for guests in a group\.$/);
  }
  const alone = { route: `test:main:dm-66`, conversation: "dm-66", direct: true };
  assert.match(await command(guest, "/session name Mine", alone), /This session is now named "Mine"/);
  assert.equal(await command(user, "/compact"), "/compact is for the owner only in a group.");
  assert.match(await command(guest, "/help"), /\/whoami/);
  assert.doesNotMatch(await command(guest, "/help"), /\/new/);
});

test("cancels one queued message when the platform delivers /queue cancel again", async () => {
  await running(owner);
  for (const text of ["first", "second"]) await say(owner, text);
  const session = await deps.sessions.find(inRoom().route);
  assert.ok(session !== null);
  const ref = randomUUID();
  assert.equal(await command(owner, "/queue cancel 1", inRoom(), ref), "Cancelled: first");
  await command(owner, "/queue cancel 1", inRoom(), ref);
  const { rows: left } = await bus.request(store.inboxList, { sessionId: session.sessionId, limit: 10 });
  assert.deepEqual(
    left.map(({ text }) => text),
    ["second"],
  );
});

test("adds no removed rule again when the platform delivers /rules add again", async () => {
  const ref = randomUUID();
  const rule = "exec(git status)";
  assert.match(await command(owner, `/rules add allow ${rule}`, inRoom(), ref), /Allowed: exec\(git status\)/);
  await command(owner, `/rules remove ${rule}`, inRoom());
  assert.doesNotMatch(await command(owner, `/rules add allow ${rule}`, inRoom(), ref), /exec\(git status\)/);
});
