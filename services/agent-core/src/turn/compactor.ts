// Executes a compaction: requests the summary and stores the new view record. Planning is pure and in ../compaction.
import type { Logger } from "@parley/chassis";
import {
  isUnfinished,
  noUsage,
  store,
  textOf,
  todosText,
  WireError,
  writtenSummary,
  type CompactionSettings,
  type DurableEvent,
  type LiveEvent,
  type Message,
  type Usage,
  type ViewRecord,
} from "@parley/contracts";
import type { CompactionCause } from "../compaction/triggers.ts";
import { estimateTokens } from "../model/tokens.ts";
import { nextRecord } from "../compaction/next-record.ts";
import { planCompaction } from "../compaction/plan.ts";
import type { Plan } from "../compaction/plan-types.ts";
import { fallbackSummary, readSummary } from "../compaction/summary.ts";
import { memoryFlushRequest, summaryRequest, transcriptRequest } from "../compaction/summary-request.ts";
import { viewMessages } from "../compaction/view-messages.ts";
import type { HookContext } from "../hooks/payloads.ts";
import type { RunHooks } from "../hooks/run-hooks.ts";
import type { RetryTimes } from "../config.ts";
import { callModel } from "../model/call.ts";
import { ModelError, type ModelProvider, type ModelRequest } from "../model/provider.ts";
import { ModelUnavailable, type ModelRegistry } from "../model/registry.ts";
import { buildPrompt, withoutToolTraffic } from "../prompt/build-prompt.ts";
import type { LeaderStore } from "../store-client/leader-store.ts";
import type { MessageHeaderOptions } from "../prompt/message-header.ts";
import type { TurnPolicy } from "../policy/turn-policy.ts";
import type { Prefix } from "../session/prefix.ts";
import { applyRecord, type SessionView } from "../session/view.ts";
import { checkFill, fillOf, nearlyDueFill, roomOf, roughTokens } from "./window-fill.ts";

export interface CompactorDeps {
  log: Logger;
  leaderStore: LeaderStore;
  models: ModelRegistry;
  retry: RetryTimes;
  runHooks: RunHooks;
  settings: CompactionSettings;
}

export interface CompactionWork {
  sessionId: string;
  /** The running turn, or the last one. */
  turnId: string;
  running: boolean;
  view: SessionView;
  /**
   * Whether the model is shown tainted content; the compacted view is then tainted too. Evaluated only when compacting.
   */
  tainted: () => boolean;
  /** Results that no message contains yet. */
  pending: readonly Message[];
  /** Requests contain only the texts of past turns (`context.history = "text_only"`). */
  textOnly: boolean;
  prefix: Prefix;
  policy: TurnPolicy;
  provider: ModelProvider;
  headings: MessageHeaderOptions | undefined;
  hookContext: HookContext;
  cause: CompactionCause;
  /** What a person wants the summary to keep. */
  instructions?: string | undefined;
  publish(event: DurableEvent | LiveEvent): void;
}

export interface Compacted {
  outcome: "compacted";
  record: ViewRecord;
  tokensBefore: number;
  tokensAfter: number;
  costMicros: number | null;
  /** Notice for people when the summary could not be written. */
  notice: string | null;
}

/** A compaction is due, and the model has to save important facts first: `words` is the request to it. */
interface FlushFirst {
  outcome: "flush_first";
  words: string;
}

/** Null when nothing is due or nothing can be removed. Rejects with the signal's reason or with the store's error. */
export async function compact(
  deps: CompactorDeps,
  work: CompactionWork,
  signal: AbortSignal,
): Promise<Compacted | FlushFirst | null> {
  const { view } = work;
  const { usableTokens, overheadTokens } = await roomOf(deps.models, work);
  const logged = [...view.messages, ...work.pending];
  // What requests do not contain neither counts nor weighs.
  const messages = work.textOnly ? withoutToolTraffic(logged, work.running ? work.turnId : "") : logged;
  if (work.cause === "check") {
    const fill = fillOf(deps.settings, roughTokens(view), usableTokens, overheadTokens);
    view.nearlyDue = fill >= nearlyDueFill;
    if (fill < checkFill) return null;
  }
  const plan = planCompaction({
    record: view.record,
    messages,
    lastSeq: logged.at(-1)?.seq ?? 0,
    settings: deps.settings,
    cause: work.cause,
    usableTokens,
    overheadTokens,
    turnId: work.running ? work.turnId : null,
    idleMs: view.idleSince === 0 ? 0 : Date.now() - view.idleSince,
    estimate: (some) => Math.ceil(estimateTokens(some) * view.tokenRatio),
  });
  if (plan === null) return null;
  if (deps.settings.memory_flush && work.cause === "check" && plan.form !== null && !wasFlushed(view)) {
    return { outcome: "flush_first", words: memoryFlushRequest() };
  }
  const trigger = hookTrigger(plan);
  const before = await deps.runHooks(
    "PreCompact",
    work.hookContext,
    { trigger, promptTokens: plan.tokensBefore, instructions: work.instructions ?? null },
    signal,
  );
  if (before.decision === "deny" && work.cause !== "overflow") return null;
  work.publish({ type: "compaction.started", turnId: work.turnId, trigger: plan.trigger });
  const instructions = [work.instructions ?? "", ...before.contexts].filter((text) => text !== "").join("\n");
  const written = await summarize(deps, work, plan, instructions, signal);
  const next = nextRecord(view.record, plan, written.summary, { tainted: work.tainted() });
  if (next === null) return null;
  const record = await withTodos(deps, work.sessionId, next);
  const costMicros = deps.models.costOf(written.provider, written.usage, Date.now());
  const { seq } = await deps.leaderStore.request(store.sessionCompact, {
    sessionId: work.sessionId,
    turnId: work.turnId,
    view: record,
    trigger: plan.trigger,
    tokensBefore: plan.tokensBefore,
    tokensAfter: plan.tokensAfter,
    usage: written.usage ?? noUsage,
    costMicros,
    model: written.modelCalled ? written.provider.model : null,
  });
  const { tokensBefore, tokensAfter } = plan;
  const summary = writtenSummary(record);
  work.publish({
    type: "compacted",
    seq,
    turnId: work.turnId,
    trigger: plan.trigger,
    strategy: plan.strategy,
    tokensBefore,
    tokensAfter,
    ...(summary === null ? {} : { summary }),
  });
  deps.log.info(
    { sessionId: work.sessionId, trigger: plan.trigger, strategy: plan.strategy, tokensBefore, tokensAfter },
    "session compacted",
  );
  await deps.runHooks("PostCompact", work.hookContext, { trigger, tokensBefore, tokensAfter, summary }, signal);
  return { outcome: "compacted", record, tokensBefore, tokensAfter, costMicros, notice: written.notice };
}

/** Open todos are stored with the record, because a summary could omit them. */
async function withTodos(deps: CompactorDeps, sessionId: string, record: ViewRecord): Promise<ViewRecord> {
  const { session } = await deps.leaderStore.request(store.sessionGet, { sessionId });
  const todos = session?.todos ?? [];
  return isUnfinished(todos) ? { ...record, todos: todosText(todos) } : record;
}

/** The model was requested to save important facts since the last compaction, and has answered. */
function wasFlushed({ messages, record }: SessionView): boolean {
  const words = memoryFlushRequest();
  const requestIndex = messages.findLastIndex(
    ({ role, from, parts }) => role === "user" && from === undefined && textOf(parts) === words,
  );
  return (
    requestIndex >= 0 &&
    (messages[requestIndex]?.seq ?? 0) >= (record?.madeAtSeq ?? 0) &&
    messages.slice(requestIndex + 1).some(({ role }) => role === "assistant")
  );
}

/** Applies a record to the view of the leader that continues with it. */
export function renderView(view: SessionView, { record }: Compacted): void {
  applyRecord(view, record);
}

function hookTrigger(plan: Plan): "auto" | "manual" | "overflow" | "idle" {
  if (plan.trigger === "demand") return "manual";
  return plan.trigger === "overflow" || plan.trigger === "idle" ? plan.trigger : "auto";
}

interface Written {
  summary: string | null;
  notice: string | null;
  usage: Usage | null;
  provider: ModelProvider;
  /** A model was called. */
  modelCalled: boolean;
}

async function summarize(
  deps: CompactorDeps,
  work: CompactionWork,
  plan: Plan,
  instructions: string,
  signal: AbortSignal,
): Promise<Written> {
  if (plan.form === null)
    return { summary: null, notice: null, usage: noUsage, provider: work.provider, modelCalled: false };
  const { view } = work;
  const visible = viewMessages(view.record, [...view.messages, ...work.pending]);
  const shown = work.textOnly ? withoutToolTraffic(visible, work.running ? work.turnId : "") : visible;
  const previousSummary = view.record?.summary ?? null;
  const options = { previousSummary, ...(instructions === "" ? {} : { instructions }) };
  const { provider, request } = requestFor(deps, work, plan, shown, options);
  try {
    const silent = { delta: () => undefined, retry: () => undefined };
    const reply = await callModel(provider, request, deps.retry, silent, signal);
    const reading = readSummary(reply);
    if (reading.status === "written") {
      return { summary: reading.summary, notice: null, usage: reply.usage, provider, modelCalled: true };
    }
    deps.log.warn({ sessionId: work.sessionId, reason: reading.reason }, "summary rejected: using the fallback");
    return { ...fallback(work, plan, previousSummary), usage: reply.usage, provider, modelCalled: true };
  } catch (error) {
    if (!(error instanceof ModelError)) throw error;
    deps.log.warn({ err: error, sessionId: work.sessionId }, "summary not written: using the fallback");
    return { ...fallback(work, plan, previousSummary), usage: noUsage, provider, modelCalled: false };
  }
}

function requestFor(
  deps: CompactorDeps,
  work: CompactionWork,
  plan: Plan,
  shown: readonly Message[],
  options: Parameters<typeof summaryRequest>[2],
): { provider: ModelProvider; request: ModelRequest } {
  const { prefix, policy } = work;
  if (plan.form === "same_prefix" && deps.settings.model === undefined) {
    const messages = buildPrompt([...shown, summaryRequest(shown, plan, options)], work.headings);
    return {
      provider: work.provider,
      request: {
        system: prefix.system,
        tools: prefix.tools,
        messages,
        maxOutputTokens: policy.maxOutputTokens,
        effort: policy.effort,
        thinking: policy.thinking,
        toolChoice: "none",
      },
    };
  }
  const provider = summaryModel(deps, work);
  const { system, message } = transcriptRequest(shown, plan, options);
  const maxOutputTokens = Math.min(policy.maxOutputTokens, maxTranscriptSummaryTokens);
  return { provider, request: { system, tools: [], messages: buildPrompt([message]), maxOutputTokens } };
}

/** The configured model, or the answering one: a model without access must not end every turn of a long conversation. */
function summaryModel(
  { settings, models, log }: CompactorDeps,
  { provider, sessionId }: CompactionWork,
): ModelProvider {
  if (settings.model === undefined) return provider;
  try {
    return models.modelFor(settings.model);
  } catch (error) {
    if (!(error instanceof ModelUnavailable)) throw error;
    log.warn({ err: error, sessionId }, "compaction.model unavailable: the answering model writes the summary");
    return provider;
  }
}

/** Output limit of a summary that is written outside of the conversation. */
const maxTranscriptSummaryTokens = 8_192;

function fallback(work: CompactionWork, plan: Plan, previousSummary: string | null) {
  const removed = work.view.messages.filter(({ seq }) => seq > plan.keepFirstTo && seq < plan.fromSeq);
  return fallbackSummary(removed, previousSummary);
}

/** True when the store refused a record that was based on an outdated one. */
export function isOutdated(error: unknown): boolean {
  return WireError.is(error, "CONFLICT");
}
