// The tool `cron` on a real store: argument names of other designs, one job per call, and only for the owner.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";
import type { Bus } from "@parley/bus";
import { createLogger } from "@parley/chassis";
import { noCost, noUsage, ParleySettingsSchema, store, type ClaimedTurn, type ToolStep } from "@parley/contracts";
import { Cleanup, createTestSigner, startStoreStack } from "@parley/testing";
import { LeaderStore } from "../../src/store-client/leader-store.ts";
import { cronTool } from "../../src/tools/cron.ts";
import type { LocalContext } from "../../src/tools/local-tool.ts";
import { resolvePolicy } from "../../src/policy/turn-policy.ts";

const cleanup = new Cleanup();
let bus: Bus;
let gateway: Bus;
const log = createLogger({ service: "test", replica: "test", level: "silent" });

before(async () => {
  const stack = await startStoreStack(cleanup);
  bus = await stack.bus("agent-core");
  gateway = await stack.bus("channel-gateway");
  await bus.request(store.leadershipAcquire, {
    opId: randomUUID(),
    holder: "test",
    grantKey: createTestSigner().grantKey,
  });
});
after(() => cleanup[Symbol.asyncDispose]());

const replyTo = { channel: "telegram", account: "default", conversation: "42" };

function context(
  overrides: {
    turn?: Partial<ClaimedTurn>;
    policy?: "singleton" | "per_conversation";
    n?: number;
    turnId?: string;
  } = {},
): LocalContext {
  const turnId = overrides.turnId ?? randomUUID();
  const settings = ParleySettingsSchema.parse({
    session: { policy: overrides.policy ?? "singleton" },
    agent: { time_zone: "Europe/Berlin" },
    channels: { irc: { net: { host: "irc.example", nick: "parley" } } },
  });
  const session = { view: null, overrides: {}, profile: null, parentId: null, depth: 0, prefixHash: null };
  const turn: ClaimedTurn = {
    turnId,
    sessionId: randomUUID(),
    sessionKey: "main",
    replyTo,
    alsoTo: [],
    inboxIds: [],
    trust: "owner",
    root: { turnId, trust: "owner", replyTo },
    parent: null,
    usage: noUsage,
    cost: noCost,
    treeCost: noCost,
    trace: null,
    attempt: 1,
    nextStep: 2,
    modelSteps: 1,
    openSteps: [],
    cancelRequested: false,
    waitedMs: 0,
    startedAt: new Date().toISOString(),
    ...overrides.turn,
  };
  const step: ToolStep = {
    turnId,
    n: overrides.n ?? 2,
    callId: "1",
    tool: "cron",
    class: "idempotent",
    state: "intended",
    input: "{}",
    result: null,
    runner: null,
    startedAt: null,
  };
  const policy = resolvePolicy(settings, session);
  const leaderStore = new LeaderStore(bus, 1, (reason) => assert.fail(reason));
  const fixed = { bus, leaderStore, log, name: "cron", tainted: false, audience: "owner" as const };
  return { ...fixed, settings, policy, turn, step, publish: () => undefined };
}

async function call(input: object, at: LocalContext = context()) {
  const outcome = await cronTool.run(JSON.stringify(input), at);
  assert.ok(outcome.status === "done" || outcome.status === "failed");
  return outcome;
}

/** The first job that a result names. */
async function jobIn(content: string) {
  const id = /job-\w+/.exec(content)?.[0] ?? "";
  const { job } = await bus.request(store.scheduleGet, { id });
  assert.ok(job !== null, content);
  return job;
}

describe("add", () => {
  const shapes: [string, object, string][] = [
    ["schedule and prompt", { schedule: "0 9 * * 1-5", prompt: "look" }, "cron 0 9 * * 1-5"],
    ["message and every_seconds", { message: "look", every_seconds: 90 }, "every 1m30s"],
    ["message and cron_expr", { message: "look", cron_expr: "*/5 * * * *" }, "cron */5 * * * *"],
    ["a duration", { prompt: "look", schedule: "every 1h30m" }, "every 1h30m"],
    ["a moment", { prompt: "look", at: "2038-05-01T09:00" }, "at 2038-05-01T07:00:00.000Z"],
  ];
  for (const [what, args, schedule] of shapes) {
    test(`accepts ${what}`, async () => {
      const { status, content } = await call({ action: "add", ...args });
      assert.equal(status, "done", content);
      const job = await jobIn(content);
      assert.deepEqual(
        [job.schedule, job.prompt, job.timeZone, job.target],
        [schedule, "look", "Europe/Berlin", "main"],
      );
      assert.match(content, /next \w{3} \d{4}-\d\d-\d\d \d\d:\d\d:\d\d Europe\/Berlin \(in /);
    });
  }

  // design: 000.31b
  test("uses UTC when neither the call nor the settings name a time zone", async () => {
    const settings = ParleySettingsSchema.parse({});
    const { content } = await call({ action: "add", schedule: "0 9 * * *", prompt: "x" }, { ...context(), settings });
    const job = await jobIn(content);
    assert.equal(job.timeZone, "UTC");
    assert.match(job.nextDue ?? "", /T09:00:00/);
  });

  test("creates one job when the call is repeated after a crash", async () => {
    const turnId = randomUUID();
    const again = () => call({ action: "add", schedule: "every 1h", prompt: "again" }, context({ turnId }));
    const [first, second] = [await jobIn((await again()).content), await jobIn((await again()).content)];
    assert.equal(first.id, second.id);
    const other = await call({ action: "add", schedule: "every 1h", prompt: "again" }, context({ turnId, n: 3 }));
    assert.notEqual((await jobIn(other.content)).id, first.id);
  });

  // design: 004.12b
  test("creates a job with its own thread that answers here when threads are per conversation", async () => {
    const asked = await call(
      { action: "add", schedule: "every 1h", prompt: "x" },
      context({ policy: "per_conversation" }),
    );
    const job = await jobIn(asked.content);
    assert.deepEqual([job.target, job.deliverTo], ["own", replyTo]);
    const elsewhere = await jobIn(
      (await call({ action: "add", schedule: "every 1h", prompt: "x", deliver_to: "irc:net:#team" })).content,
    );
    assert.deepEqual(elsewhere.deliverTo, { channel: "irc", account: "net", conversation: "#team" });
  });

  // design: 004.3b
  test("uses the conversation of its own call when calls of several turns run at once", async () => {
    const chats = ["61", "62", "63"].map((conversation) => ({ ...replyTo, conversation }));
    const jobs = await Promise.all(
      chats.map(async (chat) => {
        const at = context({ turn: { replyTo: chat } });
        const job = await jobIn(
          (await call({ action: "add", schedule: "every 1h", prompt: "x", deliver_to: "here" }, at)).content,
        );
        assert.equal(job.createdBy.sessionId, at.turn.sessionId);
        return job;
      }),
    );
    assert.deepEqual(
      jobs.map(({ deliverTo }) => deliverTo),
      chats,
    );
  });

  const wrong: [object, RegExp][] = [
    [{ prompt: "x" }, /schedule: missing\. For example: every 30m/],
    [{ schedule: "every 1h" }, /prompt: missing\. For example/],
    [{ schedule: "sometimes", prompt: "x" }, /schedule: "sometimes" is not a valid schedule; valid examples/],
    [
      { schedule: "every 1h", prompt: "x", tz: "Berlin" },
      /time_zone: "Berlin" is not an IANA time zone; a valid example is Europe\/Berlin/,
    ],
    [
      { schedule: "every 1h", prompt: "x", deliver_to: "bob" },
      /deliver_to: it is "bob", which is not of the form channel:account:conversation/,
    ],
    [
      { schedule: "every 1h", prompt: "x", deliver_to: "signal:a:b" },
      /deliver_to: .*there is no account signal:a \(configured: /,
    ],
    [{ schedule: "every 1h", prompt: "x", target: "there" }, /target: /],
    [{ every_seconds: -1, prompt: "x" }, /every_seconds: /],
  ];
  for (const [args, words] of wrong) {
    test(`rejects ${JSON.stringify(args)} with the field's name`, async () => {
      const { status, content } = await call({ action: "add", ...args });
      assert.equal(status, "failed");
      assert.match(content, words);
    });
  }
});

// design: 000.17
test("updates, runs, lists and removes a job by its id or name", async () => {
  const job = await jobIn(
    (await call({ action: "add", name: "plants", schedule: "every 1h", prompt: "water" })).content,
  );
  const changed = await call({
    action: "update",
    job_id: job.id,
    every_seconds: 60,
    message: "water them",
    enabled: true,
  });
  assert.equal(changed.status, "done");
  const now = await jobIn(changed.content);
  assert.deepEqual([now.schedule, now.prompt, now.name], ["every 1m", "water them", "plants"]);
  assert.match((await call({ action: "update", id: job.id })).content, /no field to change/);

  assert.match((await call({ action: "history", id: "plants" })).content, /has not been due yet\. Next run:/);
  const turnId = randomUUID();
  for (const _ of [1, 2])
    assert.equal((await call({ action: "run", id: "plants" }, context({ turnId }))).status, "done");
  assert.match(
    (await call({ action: "history", id: "plants" })).content,
    /^[^\n]*started manually, queued$/,
    "the repeated call ran the job twice",
  );
  assert.match((await call({ action: "list" })).content, new RegExp(`^${job.id} "plants": every 1m`, "m"));
  assert.equal((await call({ action: "remove", id: "plants" })).status, "done");
  assert.match((await call({ action: "remove", id: "plants" })).content, /id: there is no job "plants"/);
  assert.match((await call({ action: "remove" })).content, /id: missing/);
});

describe("access", () => {
  const add = { action: "add", schedule: "every 1h", prompt: "unwanted" };
  const parent = { turnId: randomUUID(), n: 1, mode: "wait" as const };
  const refused: [string, Partial<ClaimedTurn>][] = [
    ["a guest", { trust: "guest" }],
    ["a webhook", { trust: "webhook" }],
    ["a sub-agent", { parent, trust: "subagent" }],
    ["a sub-agent of the owner's turn", { parent }],
    ["a job", { trust: "cron" }],
    ["a heartbeat", { trust: "heartbeat" }],
  ];
  for (const [who, turn] of refused) {
    // design: 004.26b
    test(`${who} cannot create a job`, async () => {
      assert.equal((await call(add, context({ turn }))).status, "failed");
      const { jobs } = await bus.request(store.scheduleList, { all: true, limit: 100 });
      assert.ok(jobs.every(({ prompt }) => prompt !== "unwanted"));
    });
  }

  describe("of a user", () => {
    /** A turn that answers a user's message in their chat. */
    async function turnOf(contactId: string): Promise<Partial<ClaimedTurn>> {
      const here = { channel: "telegram", account: "main", conversation: contactId };
      const message = { ...here, externalId: randomUUID(), contact: { id: contactId }, role: "user" as const };
      const { sessionId } = await gateway.request(store.inboxPut, {
        message: { ...message, origin: "user", parts: [{ type: "text", text: "remind me" }], replyTo: here },
        sessionKey: `telegram:main:${contactId}`,
      });
      const claim = { opId: randomUUID(), epoch: 1, sessionId, knownSeq: 0, maxClaims: 5 };
      const claimed = await bus.request(store.turnClaim, claim);
      assert.equal(claimed.status, "started");
      return claimed.turn;
    }

    // design: 004.26b
    test("creates a job of the user, who sees and removes only their own", async () => {
      const [mine, other] = [context({ turn: await turnOf("51") }), context({ turn: await turnOf("52") })];
      const added = await call({ action: "add", name: "milk", schedule: "every 1h", prompt: "the milk" }, mine);
      const job = await jobIn(added.content);
      assert.match(
        added.content,
        /set by 51 \(51 on telegram:main\), in their conversation, answers go to telegram:main:51/,
      );
      assert.deepEqual([job.person?.contactId, job.createdBy.trust, job.afterRun], ["51", "user", "delete"]);
      assert.equal((await call({ action: "list" }, other)).content, "There are no jobs.");
      assert.match((await call({ action: "remove", id: job.id }, other)).content, /there is no job/);
      assert.match((await call({ action: "list" })).content, new RegExp(`^${job.id}`, "m"), "the owner sees all jobs");
      assert.match((await call({ action: "list" }, mine)).content, new RegExp(`^${job.id}`, "m"));
      const later = await call({ action: "update", id: job.id, deliver_to: "here", prompt: "the bread" }, mine);
      assert.equal(later.status, "done", later.content);
      assert.equal((await call({ action: "remove", id: "milk" }, mine)).status, "done");
    });

    // design: 004.26b
    test("does not choose where it runs and answers, nor exceeds the number of jobs", async () => {
      const mine = context({ turn: await turnOf("53") });
      for (const wrong of [{ target: "main" }, { profile: "worker" }, { deliver_to: "irc:net:#team" }]) {
        const { status, content } = await call({ ...add, ...wrong }, mine);
        assert.deepEqual([status, /only the owner chooses it/.test(content)], ["failed", true], content);
      }
      const withLimit = (user_jobs: number) => ({
        ...mine,
        settings: { ...mine.settings, permissions: { ...mine.settings.permissions, user_jobs } },
      });
      assert.match((await call(add, withLimit(0))).content, /Only the owner/);
      const soon = { ...add, prompt: "soon" };
      assert.equal((await call(soon, withLimit(1))).status, "done");
      const second = await call(soon, { ...withLimit(1), step: { ...mine.step, n: 7 } });
      assert.match(second.content, /at most 1 upcoming jobs/);
    });
  });

  // design: 004.26b
  test("lets a job remove itself and hides jobs from guests", async () => {
    const job = await jobIn((await call({ action: "add", schedule: "every 1h", prompt: "until done" })).content);
    const guest = await call({ action: "list" }, context({ turn: { trust: "guest" } }));
    assert.deepEqual([guest.status, guest.content.includes(job.id)], ["failed", false]);
    assert.equal((await call({ action: "remove", id: job.id }, context({ turn: { trust: "cron" } }))).status, "done");
  });
});
