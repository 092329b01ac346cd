// Compaction with a real store: what fills the window, and what people are told when the summary cannot be written.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import type { Bus } from "@parley/bus";
import { createLogger } from "@parley/chassis";
import {
  ParleySettingsSchema,
  store,
  type DurableEvent,
  type LiveEvent,
  type ParleySettings,
  type ViewRecord,
} from "@parley/contracts";
import { Cleanup, createTestSigner, startStoreStack } from "@parley/testing";
import { ModelError, type ModelProvider, type ModelRequest } from "../../src/model/provider.ts";
import { ModelRegistry } from "../../src/model/registry.ts";
import { createRehearsal } from "../../src/model/rehearsal/rehearsal.ts";
import { estimateTokens } from "../../src/model/tokens.ts";
import { neutralVerdict } from "../../src/hooks/verdict.ts";
import { mainPolicy } from "../../src/policy/turn-policy.ts";
import { prefixOf } from "../../src/session/prefix.ts";
import { appendMessages, emptyView } from "../../src/session/view.ts";
import { LeaderStore } from "../../src/store-client/leader-store.ts";
import { compact } from "../../src/turn/compactor.ts";
import { Log } from "./histories.ts";

const cleanup = new Cleanup();
const log = createLogger({ service: "test", replica: "test", level: "silent" });
let core: Bus;
let gateway: Bus;
let epoch: number;

before(async () => {
  const stack = await startStoreStack(cleanup);
  core = await stack.bus("agent-core");
  gateway = await stack.bus("channel-gateway");
  const { grantKey } = createTestSigner();
  ({ epoch } = await core.request(store.leadershipAcquire, { opId: randomUUID(), holder: "test", grantKey }));
});
after(() => cleanup[Symbol.asyncDispose]());

async function begunTurn(): Promise<{ sessionId: string; turnId: string }> {
  const place = { channel: "http", account: "default", conversation: randomUUID() };
  const { sessionId } = await gateway.request(store.inboxPut, {
    message: {
      ...place,
      externalId: randomUUID(),
      contact: { id: "owner" },
      role: "owner",
      origin: "user",
      parts: [{ type: "text", text: "go on" }],
      replyTo: null,
    },
    sessionKey: `http:default:${place.conversation}`,
  });
  const claim = { opId: randomUUID(), epoch, sessionId, knownSeq: 0, maxClaims: 5 };
  const claimed = await core.request(store.turnClaim, claim);
  assert.equal(claimed.status, "started");
  return { sessionId, turnId: claimed.turn.turnId };
}

/** Twenty requests with their answers; `result`: of a call in each turn. */
function talk(result?: string): Log {
  const said = new Log();
  for (let turn = 1; turn <= 20; turn++) {
    said.asks(turn, `request ${turn}: ${"q".repeat(1_000)}`);
    if (result !== undefined) said.uses(turn, result);
    said.answers(turn, `answer ${turn}: ${"a".repeat(1_000)}`);
  }
  return said;
}

interface Work {
  windowTokens: number;
  maxOutputTokens: number;
  prefixChars: number;
  tokenRatio?: number;
  fails?: boolean;
  /** Requests omit the tool traffic of past turns, of which each has this result. */
  omittedResult?: string;
  /** The setting `compaction.model`. */
  model?: string;
}

async function compacted({
  windowTokens,
  maxOutputTokens,
  prefixChars,
  tokenRatio = 1,
  fails = false,
  omittedResult,
  model,
}: Work) {
  const settings: ParleySettings = ParleySettingsSchema.parse({
    compaction: { trigger_share: 0.5, keep_share: 0.1, model },
    models: { known: { mine: { context_window: windowTokens } } },
  });
  const models = new ModelRegistry({
    access: { anthropic: null, openai: null, named: new Map() },
    main: "rehearsal",
    settings: settings.models,
    thinking: "adaptive",
    warn: () => undefined,
  });
  const real = createRehearsal("mine");
  const requests: ModelRequest[] = [];
  const provider: ModelProvider = {
    ...real,
    stream: (request, on, signal) => {
      requests.push(request);
      return fails
        ? Promise.reject(new ModelError("invalid", "the provider refuses"))
        : real.stream(request, on, signal);
    },
  };
  const view = { ...emptyView(), tokenRatio };
  const { messages } = talk(omittedResult);
  appendMessages(view, messages, messages.at(-1)?.seq ?? 0);
  const events: (DurableEvent | LiveEvent)[] = [];
  const { sessionId, turnId } = await begunTurn();
  const outcome = await compact(
    {
      log,
      leaderStore: new LeaderStore(core, epoch, (reason) => assert.fail(reason)),
      models,
      retry: { tries: 1, baseMs: 1, capMs: 1, firstByteMs: 10_000, idleMs: 10_000 },
      runHooks: () => neutralVerdict,
      settings: settings.compaction,
    },
    {
      sessionId,
      turnId,
      running: false,
      view,
      tainted: () => false,
      pending: [],
      textOnly: omittedResult !== undefined,
      prefix: prefixOf("s".repeat(prefixChars), [], {}),
      policy: { ...mainPolicy(settings), maxOutputTokens },
      provider,
      headings: undefined,
      hookContext: { sessionId, sessionKey: "k", turnId, permissionMode: "default", profile: null },
      cause: "check",
      publish: (event) => events.push(event),
    },
    new AbortController().signal,
  );
  return { outcome, events, messages, requests };
}

/** Half of this window is a little more than the messages weigh. */
const windowTokens = Math.ceil(estimateTokens(talk().messages) * 2.2);

// design: 004.14b
test("counts the answer and the prompt's prefix against the window", async () => {
  const small = { windowTokens, maxOutputTokens: 10, prefixChars: 10 };
  assert.equal((await compacted(small)).outcome, null);
  const share = Math.ceil(windowTokens * 0.15);
  assert.equal((await compacted({ ...small, maxOutputTokens: share })).outcome?.outcome, "compacted");
  assert.equal((await compacted({ ...small, prefixChars: share * 3 })).outcome?.outcome, "compacted");
});

test("weighs messages by the ratio of the tokens that the provider counted", async () => {
  const small = { windowTokens, maxOutputTokens: 10, prefixChars: 10 };
  assert.equal((await compacted({ ...small, tokenRatio: 1.2 })).outcome?.outcome, "compacted");
  assert.equal((await compacted({ ...small, tokenRatio: 0.8 })).outcome, null);
});

// design: 002.15, 003.27
test("trims the history and says so, with the tokens before and after, when summarising fails", async () => {
  const { outcome, events, messages } = await compacted({
    windowTokens,
    maxOutputTokens: Math.ceil(windowTokens * 0.15),
    prefixChars: 10,
    fails: true,
  });
  assert.ok(outcome?.outcome === "compacted");
  assert.match(outcome.notice ?? "", /could not summarize the earlier part/);
  const record: ViewRecord = outcome.record;
  const gone = messages.filter(({ seq }) => seq > record.keepFirstTo && seq < record.fromSeq);
  assert.ok(gone.length > 0 && record.fromSeq <= (messages.at(-1)?.seq ?? 0));
  assert.match(record.summary ?? "", new RegExp(`\\b${gone.length}\\b`));
  assert.deepEqual(
    events.map(({ type }) => type),
    ["compaction.started", "compacted"],
  );
  const [, told] = events;
  assert.ok(told?.type === "compacted" && told.tokensAfter < told.tokensBefore);
});

test("has the summary written from what requests contain when they omit tool traffic", async () => {
  const share = Math.ceil(windowTokens * 0.15);
  const small = { windowTokens, maxOutputTokens: share, prefixChars: 10, omittedResult: "r".repeat(100_000) };
  const { outcome, requests } = await compacted(small);
  assert.ok(outcome?.outcome === "compacted");
  assert.equal(outcome.notice, null);
  assert.equal(requests.length, 1);
  const sent = requests.flatMap(({ messages }) => messages.flatMap(({ parts }) => parts));
  assert.ok(sent.every(({ type }) => type === "text"));
  assert.ok(JSON.stringify(sent).includes("request 1:"));
});

test("has the answering model write the summary when the configured one has no key", async () => {
  const share = Math.ceil(windowTokens * 0.15);
  const small = { windowTokens, maxOutputTokens: share, prefixChars: 10, model: "openai:small" };
  const { outcome, requests } = await compacted(small);
  assert.ok(outcome?.outcome === "compacted");
  assert.deepEqual([outcome.notice, requests.length], [null, 1]);
});
