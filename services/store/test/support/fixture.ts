// A store on real servers for its tests: requests by the three services with typical payloads, and access to the tables by their owner
// role.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Bus } from "@parley/bus";
import {
  noUsage,
  store,
  WireError,
  type ClaimedTurn,
  type Grant,
  type InboundMessage,
  type InputOf,
  type OutputOf,
} from "@parley/contracts";
import {
  createTestSigner,
  pollUntil,
  startStoreStack,
  temporaryFolder,
  type Cleanup,
  type StoreStack,
} from "@parley/testing";
import { Client } from "pg";

type Said = Partial<InboundMessage>;
type Commit = InputOf<typeof store.stepCommit>;

export interface StoreFixture {
  readonly stack: StoreStack;
  readonly gateway: Bus;
  readonly core: Bus;
  readonly runner: Bus;
  readonly sql: Client;
  /** Of the requesting leader; `takeOver` changes the leader. */
  readonly epoch: number;
  takeOver(): Promise<number>;
  fenced(): { opId: string; epoch: number };
  /** The grant of a call, signed by the leader. */
  grant(call: Pick<Grant, "sessionId" | "turnId" | "n"> & Partial<Grant>): string;
  /** The owner sends "hello" or another text in a Telegram chat. */
  put(sessionKey: string, said?: Said): Promise<OutputOf<typeof store.inboxPut>>;
  /** Starts a turn from the session's queue. */
  started(sessionId: string, more?: Partial<InputOf<typeof store.turnClaim>>): Promise<ClaimedTurn>;
  /** A person sends a message in their own conversation, and a turn starts. */
  begun(said?: Said): Promise<{ sessionId: string; turnId: string }>;
}

/** Resolves when at least `count` statements of the store wait for a lock. */
export async function untilLocked(sql: Client, count: number): Promise<void> {
  await pollUntil(async () => {
    const { rowCount } = await sql.query(
      "SELECT FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE datname = current_database() AND NOT granted",
    );
    return (rowCount ?? 0) >= count;
  }, `${count} statements that wait for a lock`);
}

/** `settings`: parley.toml as the store reads it. */
export async function openStoreFixture(cleanup: Cleanup, settings?: string): Promise<StoreFixture> {
  const stack = await startStoreStack(
    cleanup,
    settings === undefined ? {} : { storeEnv: await fileOf(settings, cleanup) },
  );
  const [gateway, core, runner] = await Promise.all([
    stack.bus("channel-gateway"),
    stack.bus("agent-core"),
    stack.bus("tool-runner"),
  ]);
  const sql = new Client({ connectionString: stack.postgres.ownerUrl });
  await sql.connect();
  cleanup.add(() => sql.end());
  const signer = createTestSigner();
  const lead = async () => {
    const { grantKey } = signer;
    return (await core.request(store.leadershipAcquire, { opId: randomUUID(), holder: "test", grantKey })).epoch;
  };
  let epoch = await lead();
  const fixture: StoreFixture = {
    stack,
    gateway,
    core,
    runner,
    sql,
    get epoch() {
      return epoch;
    },
    takeOver: async () => (epoch = await lead()),
    fenced: () => ({ opId: randomUUID(), epoch }),
    grant: (call) => signer.sign({ epoch, ...call }),
    put: (sessionKey, said = {}) => gateway.request(store.inboxPut, { message: inbound(said), sessionKey }),
    started: async (sessionId, more = {}) => {
      const claim = { ...fixture.fenced(), sessionId, knownSeq: 0, maxClaims: 5, ...more };
      const claimed = await core.request(store.turnClaim, claim);
      assert.equal(claimed.status, "started");
      return claimed.turn;
    },
    begun: async (said = {}) => {
      const conversation = randomUUID();
      const place = { channel: "telegram", account: "main", conversation };
      const { sessionId } = await fixture.put(`test:${conversation}`, { ...place, replyTo: place, ...said });
      const { turnId } = await fixture.started(sessionId);
      return { sessionId, turnId };
    },
  };
  return fixture;
}

async function fileOf(settings: string, cleanup: Cleanup): Promise<{ PARLEY_CONFIG: string }> {
  const path = join(await temporaryFolder(cleanup), "parley.toml");
  await writeFile(path, settings);
  return { PARLEY_CONFIG: path };
}

export const saying = (text: string): Said => ({ parts: [{ type: "text", text }] });

export function inbound(said: Said = {}): InboundMessage {
  const place = { channel: "telegram", account: "main", conversation: "42" };
  return {
    ...place,
    externalId: randomUUID(),
    contact: { id: "7" },
    role: "owner",
    origin: "user",
    parts: [{ type: "text", text: "hello" }],
    replyTo: place,
    ...said,
  };
}

/** Usage of a model's answer. */
export const usage = { ...noUsage, inputTokens: 10, outputTokens: 5 };

/** A model's answer that ends its turn, unless overridden. */
export function stepOf(
  { opId, epoch }: { opId: string; epoch: number },
  turnId: string,
  n: number,
  more: Partial<Commit> = {},
): Commit {
  return {
    opId,
    epoch,
    turnId,
    n,
    model: "test",
    stopReason: "end_turn",
    usage,
    parts: [{ type: "text", text: "answer" }],
    results: 0,
    toolCalls: [],
    outgoing: [],
    finish: { state: "done", exitReason: "end_turn", text: "answer" },
    ...more,
  };
}

export const failsWith =
  (code: string, words = /./) =>
  (error: unknown) =>
    WireError.is(error) && error.code === code && words.test(error.message);
