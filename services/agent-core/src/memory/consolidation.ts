// Memory kept in order while nobody has anything to say: what is new goes through one call of a model, and what it makes of it into
// MEMORY.md. People go first: when one speaks the call ends at once, and its material waits for the next time of rest.
import type { Bus } from "@parley/bus";
import { Counter, faultPoint, type Logger, type ServiceMetrics } from "@parley/chassis";
import {
  documentChanged,
  inboxReady,
  isMemoryPath,
  newId,
  noUsage,
  priorityOf,
  store,
  WireError,
  type InputOf,
  type ParleySettings,
} from "@parley/contracts";
import type { RetryTimes } from "../config.ts";
import { callModel } from "../model/call.ts";
import { ModelError, type ModelProvider } from "../model/provider.ts";
import { ModelUnavailable, type ModelRegistry } from "../model/registry.ts";
import type { Budgets } from "../turn/budget.ts";
import { readUpdate } from "./consolidation-answer.ts";
import { consolidationRequest, type Material } from "./consolidation-request.ts";

export interface ConsolidationDeps {
  bus: Bus;
  log: Logger;
  metrics: ServiceMetrics;
  epoch: number;
  settings: Pick<ParleySettings, "memory" | "limits">;
  models: ModelRegistry;
  retry: RetryTimes;
  budgets: Budgets;
  /** A turn is being worked on. */
  busy(): boolean;
  lost(reason: string): void;
}

export interface Consolidation {
  /** Ends a call that is under way; nothing is begun any more. */
  stop(): Promise<void>;
}

type Call = Pick<InputOf<typeof store.memoryConsolidate>, "model" | "usage" | "costMicros" | "outcome">;

/** Between two looks at whether it is time; of a shorter rest the half. */
const lookMs = 60_000;
const callTimeoutMs = 5 * 60_000;
const storeTimeoutMs = 30_000;

export function startConsolidation(deps: ConsolidationDeps): Consolidation {
  const { bus, log } = deps;
  const { consolidation: settings } = deps.settings.memory;
  const restMs = settings.idle_minutes * 60_000;
  if (restMs === 0) return { stop: () => Promise.resolve() };
  const outcomes = new Counter({
    name: "parley_memory_consolidations_total",
    help: "Calls of a model to consolidate memory, by what became of them",
    labelNames: ["outcome"],
    registers: [deps.metrics.registry],
  });
  let restsSince = Date.now();
  /** Something may be new. */
  let fresh = true;
  let notBefore = 0;
  let stopped = false;
  let running: { spoken: AbortController; done: Promise<void> } | undefined;
  const hints = bus.subscribe(inboxReady, {}, ({ priority }) => {
    fresh = true;
    // Jobs and heartbeats begin beside a call that is under way, which holds nothing they need.
    if (priority !== priorityOf.user) return;
    restsSince = Date.now();
    running?.spoken.abort(new Error("somebody has something to say"));
  });
  const changes = bus.subscribe(documentChanged, {}, ({ path }) => {
    if (isMemoryPath(path)) fresh = true;
  });

  const once = async (signal: AbortSignal): Promise<void> => {
    const { max_material_chars: maxChars, conversations, max_memory_chars: maxMemoryChars } = settings;
    fresh = false;
    const material = await bus.request(
      store.memoryMaterial,
      { maxChars, conversations },
      { timeoutMs: storeTimeoutMs },
    );
    if (material.tooLong) log.warn("MEMORY.md is too long to be consolidated; shorten it: parley docs edit MEMORY.md");
    if (material.sources.length === 0 || signal.aborted) return;
    fresh = true;
    if (!mayCall(deps, material.today)) {
      notBefore = nextDay(Date.now());
      return;
    }
    const provider = settings.model === undefined ? deps.models.main : deps.models.modelFor(settings.model);
    const call = await ask(deps, provider, material, maxMemoryChars, signal);
    if (stopped) return;
    faultPoint("agent.before_consolidate");
    const { usage, costMicros } = call;
    const input = { opId: newId(), epoch: deps.epoch, ...call };
    const answer = await bus.request(store.memoryConsolidate, input, { timeoutMs: storeTimeoutMs });
    const outcome = call.outcome.kind === "edit" ? answer.status : call.outcome.kind;
    outcomes.inc({ outcome });
    const reason =
      call.outcome.kind === "edit" ? ("reason" in answer ? answer.reason : undefined) : call.outcome.reason;
    const places = material.sources.map(({ place }) => place);
    log.info({ outcome, reason, places, answer, model: call.model, usage, costMicros }, "memory consolidated");
    // What did not work is tried after another time of rest.
    if (answer.status !== "saved" && answer.status !== "unchanged") restsSince = Date.now();
  };
  const look = () => {
    const now = Date.now();
    if (running !== undefined || !fresh || now < notBefore || now - restsSince < restMs || deps.busy()) return;
    const spoken = new AbortController();
    const done = once(spoken.signal).catch((error: unknown) => {
      restsSince = Date.now();
      fresh = true;
      if (stopped) return;
      if (WireError.is(error, "STALE_EPOCH")) deps.lost("another agent-core has taken over");
      else if (error instanceof ModelUnavailable) log.warn(`memory.consolidation.model: ${error.message}`);
      else log.warn({ err: error }, "memory could not be consolidated; tried again after another time of rest");
    });
    running = { spoken, done: done.finally(() => (running = undefined)) };
  };
  const timer = setInterval(look, Math.min(lookMs, restMs / 2));
  return {
    async stop() {
      stopped = true;
      clearInterval(timer);
      hints.close();
      changes.close();
      running?.spoken.abort(new Error("handing over"));
      await running?.done;
    },
  };
}

/** The day's own bounds of consolidation, and the one of everything. */
export function mayCall(
  { settings: { memory, limits }, budgets }: Pick<ConsolidationDeps, "settings" | "budgets">,
  { calls, cost }: Material["today"],
): boolean {
  const { max_calls_per_day: maxCalls, max_usd_per_day: maxUsd } = memory.consolidation;
  if (calls >= maxCalls || (maxUsd > 0 && cost.micros >= maxUsd * 1_000_000)) return false;
  return limits.max_usd_per_day === 0 || budgets.dayMicros() < limits.max_usd_per_day * 1_000_000;
}

/** The first moment of the next day, UTC. */
function nextDay(now: number): number {
  const dayMs = 24 * 60 * 60 * 1000;
  return (Math.floor(now / dayMs) + 1) * dayMs;
}

/** One call and no second try. What it costs counts, whatever it has answered. */
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
    budgets.spendAlone(costMicros);
    const spent = { model: provider.model, usage: reply.usage ?? noUsage, costMicros };
    const read = readUpdate(reply, material, maxMemoryChars);
    if ("problem" in read) return { ...spent, outcome: { kind: "failed", reason: read.problem.slice(0, 500) } };
    return { ...spent, outcome: read };
  } catch (error) {
    if (signal.aborted) return { ...unknown, outcome: { kind: "cancelled", reason: "somebody had something to say" } };
    if (late.aborted) return { ...unknown, outcome: { kind: "failed", reason: "the model did not answer in time" } };
    if (!(error instanceof ModelError)) throw error;
    return { ...unknown, outcome: { kind: "failed", reason: error.failure } };
  }
}
