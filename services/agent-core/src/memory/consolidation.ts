// Consolidates memory while the agent is idle: one model call turns new material into an edit of MEMORY.md. Input from a person
// cancels the call immediately; its material is processed in the next idle period.
import type { Bus } from "@parley/bus";
import { faultPoint, type Logger, type ServiceMetrics } from "@parley/chassis";
import {
  documentChanged,
  inboxReady,
  isMemoryPath,
  noUsage,
  priorityOf,
  store,
  type InputOf,
  type ParleySettings,
} from "@parley/contracts";
import type { RetryTimes } from "../config.ts";
import { callModel } from "../model/call.ts";
import { ModelError, type ModelProvider } from "../model/provider.ts";
import { ModelUnavailable, type ModelRegistry } from "../model/registry.ts";
import type { LeaderStore } from "../store-client/leader-store.ts";
import type { Budgets } from "../limits/budget.ts";
import { parseUpdate } from "./parse-consolidation.ts";
import { consolidationRequest, type Material } from "./consolidation-request.ts";

export interface ConsolidationDeps {
  bus: Bus;
  log: Logger;
  metrics: ServiceMetrics;
  leaderStore: LeaderStore;
  settings: Pick<ParleySettings, "memory" | "limits">;
  models: ModelRegistry;
  retry: RetryTimes;
  budgets: Budgets;
  /** Whether a turn is running. */
  busy(): boolean;
}

export interface Consolidation {
  /** Cancels a running call and starts no further ones. */
  stop(): Promise<void>;
}

type Call = Pick<InputOf<typeof store.memoryConsolidate>, "model" | "usage" | "costMicros" | "outcome">;

/** Interval of the checks whether consolidation is due; at most half of the idle period. */
const pollMs = 60_000;
const callTimeoutMs = 5 * 60_000;
const storeTimeoutMs = 30_000;

export function startConsolidation(deps: ConsolidationDeps): Consolidation {
  const { bus, leaderStore, log } = deps;
  const { consolidation: settings } = deps.settings.memory;
  const restMs = settings.idle_minutes * 60_000;
  if (restMs === 0) return { stop: () => Promise.resolve() };
  let restsSince = Date.now();
  /** Whether there may be new material. */
  let fresh = true;
  let notBefore = 0;
  let stopped = false;
  let running: { cancelled: AbortController; done: Promise<void> } | undefined;
  const hints = bus.subscribe(inboxReady, {}, ({ priority }) => {
    fresh = true;
    // Jobs and heartbeats can run concurrently with a consolidation call, since it holds nothing that they need.
    if (priority !== priorityOf.user) return;
    restsSince = Date.now();
    running?.cancelled.abort(new Error("a person sent a message"));
  });
  const changes = bus.subscribe(documentChanged, {}, ({ path }) => {
    if (isMemoryPath(path)) fresh = true;
  });

  const once = async (signal: AbortSignal): Promise<void> => {
    const { max_material_chars: maxChars, conversations, max_memory_chars: maxMemoryChars } = settings;
    fresh = false;
    const material = await leaderStore.request(
      store.memoryMaterial,
      { maxChars, conversations },
      { timeoutMs: storeTimeoutMs },
    );
    if (material.tooLong)
      log.warn("memory not consolidated: MEMORY.md is too long; shorten it with parley docs edit MEMORY.md");
    if (material.sources.length === 0 || signal.aborted) return;
    fresh = true;
    if (!isWithinBudget(deps, material.today)) {
      notBefore = nextDay(Date.now());
      return;
    }
    const provider = settings.model === undefined ? deps.models.main : deps.models.modelFor(settings.model);
    const call = await ask(deps, provider, material, maxMemoryChars, signal);
    if (stopped) return;
    faultPoint("agent.before_consolidate");
    const { usage, costMicros } = call;
    const answer = await leaderStore.request(store.memoryConsolidate, call, { timeoutMs: storeTimeoutMs });
    const outcome = call.outcome.kind === "edit" ? answer.status : call.outcome.kind;
    deps.metrics.count("parley_memory_consolidations_total", { outcome });
    const reason =
      call.outcome.kind === "edit" ? ("reason" in answer ? answer.reason : undefined) : call.outcome.reason;
    const places = material.sources.map(({ place }) => place);
    log.info({ outcome, reason, places, text: answer, model: call.model, usage, costMicros }, "memory consolidated");
    // A failed consolidation is retried after another idle period.
    if (answer.status !== "saved" && answer.status !== "unchanged") restsSince = Date.now();
  };
  const check = () => {
    const now = Date.now();
    if (running !== undefined || !fresh || now < notBefore || now - restsSince < restMs || deps.busy()) return;
    const cancellation = new AbortController();
    const done = once(cancellation.signal).catch((error: unknown) => {
      restsSince = Date.now();
      fresh = true;
      if (stopped) return;
      if (error instanceof ModelUnavailable)
        log.warn(`memory not consolidated: memory.consolidation.model: ${error.message}`);
      else log.warn({ err: error }, "memory not consolidated: retried after another idle period");
    });
    running = { cancelled: cancellation, done: done.finally(() => (running = undefined)) };
  };
  const timer = setInterval(check, Math.min(pollMs, restMs / 2));
  return {
    async stop() {
      stopped = true;
      clearInterval(timer);
      hints.close();
      changes.close();
      running?.cancelled.abort(new Error("the leader is handing over"));
      await running?.done;
    },
  };
}

/** Whether the daily limits of consolidation and of the deployment permit another call. */
export function isWithinBudget(
  { settings: { memory, limits }, budgets }: Pick<ConsolidationDeps, "settings" | "budgets">,
  { calls, cost }: Material["today"],
): boolean {
  const { max_calls_per_day: maxCalls, max_usd_per_day: maxUsd } = memory.consolidation;
  if (calls >= maxCalls || (maxUsd > 0 && cost.micros >= maxUsd * 1_000_000)) return false;
  return limits.max_usd_per_day === 0 || budgets.dayMicroUsd() < limits.max_usd_per_day * 1_000_000;
}

/** The first moment of the next day, UTC. */
function nextDay(now: number): number {
  const dayMs = 24 * 60 * 60 * 1000;
  return (Math.floor(now / dayMs) + 1) * dayMs;
}

/** Makes one model call without retries. Its cost counts regardless of the answer. */
async function ask(
  { models, retry, budgets }: ConsolidationDeps,
  provider: ModelProvider,
  material: Material,
  maxMemoryChars: number,
  signal: AbortSignal,
): Promise<Call> {
  const silent = { delta: () => undefined, retry: () => undefined };
  const late = AbortSignal.timeout(callTimeoutMs);
  const unknown = { model: provider.model, usage: noUsage, costMicros: null };
  try {
    const request = consolidationRequest(material, maxMemoryChars);
    const both = AbortSignal.any([signal, late]);
    const reply = await callModel(provider, request, { ...retry, tries: 1 }, silent, both);
    const costMicros = models.costOf(provider, reply.usage, Date.now());
    budgets.spendOutsideTurns(costMicros);
    const spent = { model: provider.model, usage: reply.usage ?? noUsage, costMicros };
    const read = parseUpdate(reply, material, maxMemoryChars);
    if ("problem" in read) return { ...spent, outcome: { kind: "failed", reason: read.problem.slice(0, 500) } };
    return { ...spent, outcome: read };
  } catch (error) {
    if (signal.aborted) return { ...unknown, outcome: { kind: "cancelled", reason: "a person sent a message" } };
    if (late.aborted) return { ...unknown, outcome: { kind: "failed", reason: "the model call timed out" } };
    if (!(error instanceof ModelError)) throw error;
    return { ...unknown, outcome: { kind: "failed", reason: error.failure } };
  }
}
