// agent-core: waits as a standby until it leads, then works. All work runs under one epoch; losing it ends the process.
import { setTimeout as delay } from "node:timers/promises";
import {
  exportCertificateExpiry,
  openChassis,
  serveHealthReport,
  type Chassis,
  type RunningService,
  type StartContext,
} from "@parley/chassis";
import {
  controlCancel,
  controlCompact,
  controlModels,
  controlStreaming,
  controlSessionEnded,
  toolsChanged,
} from "@parley/contracts";
import { omitUndefined } from "@parley/kit";
import type { AgentConfig } from "./config.ts";
import { becomeLeader, type Leadership } from "./leader/leadership.ts";
import { Standing } from "./leader/standing.ts";
import { Contents } from "./model/attachment-contents.ts";
import type { ModelProvider } from "./model/provider.ts";
import { namedModel } from "./model/named-model.ts";
import { ModelRegistry } from "./model/registry.ts";
import { createHooks } from "./hooks/run-hooks.ts";
import { startConsolidation } from "./memory/consolidation.ts";
import { Memory } from "./memory/memory.ts";
import { builtInSkills } from "./prompt/built-in-skills.ts";
import { PromptSources } from "./prompt/sources.ts";
import { isEncrypted, RedisState, waitForRedis } from "./redis.ts";
import { startWakeUps } from "./leader/wake-ups.ts";
import { TurnQueue } from "./queue/turn-queue.ts";
import { SamplingService } from "./sampling/service.ts";
import { startScheduler } from "./schedule/scheduler.ts";
import { Budgets } from "./limits/budget.ts";
import { localTools } from "./tools/local-tools.ts";
import { ToolCatalog } from "./tools/catalog.ts";
import { Prefixes } from "./session/prefix.ts";
import { TurnPreparer } from "./turn/prepare.ts";
import { RunningCalls } from "./turn/running-calls.ts";
import { SentRequests } from "./turn/sent-request.ts";
import { StreamingCalls } from "./turn/streaming-calls.ts";
import { sessionEnded } from "./leader/compact-on-request.ts";
import { SessionRunner } from "./leader/session-runner.ts";
import { countAttempt, createTurnMetrics, exportLeaderFigures, metered } from "./telemetry/telemetry.ts";
import type { TurnDeps } from "./turn/dependencies.ts";
import { startVoice } from "./voice/voice.ts";

/** Long, because a leader cannot continue without the store, and an outage must not lose a committed answer. */
const storeTimeoutMs = 60 * 60 * 1000;

// For this long after its start, a leader answers sampling requests for tool calls that it has not resumed yet with UNAVAILABLE: the
// previous leader's turns are claimed at the start and every 2 s, and may wait for a slot.
const takeUpMs = 15_000;

/** Timeout for loading documents; on timeout a turn uses the previous ones. */
const promptTimeoutMs = 5_000;

export async function start(
  config: AgentConfig,
  overrides: { chassis?: Chassis; provider?: ModelProvider; context?: StartContext } = {},
): Promise<RunningService> {
  const chassis =
    overrides.chassis ?? (await openChassis(config, { secrets: config.secrets.values, context: overrides.context }));
  const { bus, log, metrics, startup } = chassis;
  config.secrets.onChange = (variable) => log.info({ variable }, "secret changed: read from its file again");
  config.secrets.onFailure = (variable, reason) =>
    log.warn({ variable, reason }, "secret file unreadable: last value kept");
  const models: ModelRegistry = new ModelRegistry({
    access: config.access,
    main: config.model,
    settings: config.settings.models,
    thinking: config.settings.agent.thinking,
    warn: (message) => log.warn(message),
    provider: overrides.provider,
    contents: new Contents(bus),
    measure: (model) =>
      metered(model, (attempt) => countAttempt(metrics, attempt, models.costOf(model, attempt.usage, Date.now()))),
  });
  const provider = models.main;
  const ended = Promise.withResolvers<Error | undefined>();
  const lost = (reason: string) => ended.resolve(new Error(`leadership lost: ${reason}`));
  const stopping = new AbortController();

  let work: Work | undefined;
  let started = false;
  const standing = new Standing(startup);
  const unready = () => bus.problem ?? standing.problem;
  const redisState = new RedisState(metrics);
  exportCertificateExpiry(metrics, "redis", config.redis.files);
  serveHealthReport(bus, config, () => ({
    role: work === undefined ? "standby" : "leader",
    epoch: work?.leadership.leaderStore.epoch ?? null,
    ready: started && unready() === null,
    details: {
      model: provider.model,
      activeSessions: work?.sessions.activeCount ?? 0,
      redisEncrypted: isEncrypted(config.redis),
      ...omitUndefined({ waitingFor: (started ? startup.waitingFor : startup.reason) ?? undefined }),
      ...(redisState.problem === null ? {} : { redisProblem: redisState.problem }),
    },
  }));
  await bus.verifyPermissions();
  // A standby without Redis can never lead, so it must not replace a working replica.
  await waitForRedis(config.redis, startup);
  redisState.connected();
  started = true;
  // A new leader starts its first turn sooner when its model's client is loaded.
  void provider.prepare();
  const leading = (async () => {
    try {
      const leadership = await becomeLeader({ config, bus, log, redisState, metrics, standing, lost }, stopping.signal);
      work = startWork(config, chassis, models, leadership, lost);
    } catch (error) {
      if (!stopping.signal.aborted) ended.resolve(error instanceof Error ? error : new Error(String(error)));
    }
  })();
  void bus.closed.then((error) => ended.resolve(error));

  return {
    metrics,
    log,
    unready,
    ended: ended.promise,
    async close() {
      stopping.abort();
      await leading;
      await work?.handOver(config.handoverMs);
      await bus.drain();
    },
  };
}

interface Work {
  leadership: Leadership;
  sessions: SessionRunner;
  handOver(withinMs: number): Promise<void>;
}

function startWork(
  config: AgentConfig,
  { bus, log, metrics }: Chassis,
  models: ModelRegistry,
  leadership: Leadership,
  lost: (reason: string) => void,
): Work {
  const { agent, hooks, mcp, subagents } = config.settings;
  const { leaderStore, signGrant } = leadership;
  const { epoch } = leaderStore;
  const provider = models.main;
  const catalog = new ToolCatalog(bus, log);
  const budgets = new Budgets();
  const sampling = new SamplingService({
    bus,
    log,
    epoch,
    storeTimeoutMs,
    settings: mcp,
    models,
    retry: config.retry,
    budgets,
    takeUpMs,
  });
  const memory = new Memory({ bus, leaderStore, log, embedder: config.embedder });
  const deps: TurnDeps = {
    bus,
    log,
    leaderStore,
    settings: config.settings,
    runHooks: createHooks({ bus, log, metrics, hooks }),
    model: {
      models,
      retry: config.retry,
      budgets,
      prefixes: new Prefixes(leaderStore),
      metrics: createTurnMetrics(metrics),
      streaming: new StreamingCalls(),
    },
    tools: {
      signGrant,
      running: new RunningCalls(bus),
      sampling,
      permissionEvaluated: (decision) => metrics.count("parley_permission_evaluations_total", { decision }),
    },
    enrichment: { memory, transcriber: config.transcriber },
  };
  void budgets.load(leaderStore, log);
  const sources = new PromptSources(bus, leaderStore, log, {
    timeoutMs: promptTimeoutMs,
    builtInSkills: config.settings.context.built_in_skills ? builtInSkills : [],
  });
  const setup = new TurnPreparer(
    deps,
    catalog,
    sources,
    localTools(config.settings, memory, config.synthesizer, sources),
  );
  const sessions = new SessionRunner(deps, setup, Math.max(256, agent.max_concurrent_turns * 4));
  const queue: TurnQueue = new TurnQueue({
    redis: config.redis,
    namespace: config.namespace,
    // A turn that waits for a slot occupies a job, so there are more jobs than slots.
    concurrency: 2 * (agent.max_concurrent_turns + subagents.max_concurrent),
    log,
    drain: (sessionId) => sessions.drain(sessionId),
    onReconnect: () => void intake.sweep(),
  });
  const intake = startWakeUps({
    bus,
    log,
    leaderStore,
    queue,
    sessions,
    maxDirect: agent.max_concurrent_turns,
  });
  const scheduler = startScheduler({
    bus,
    log,
    metrics,
    leaderStore,
    settings: config.settings,
    timeZone: agent.time_zone,
  });
  const consolidation = startConsolidation({
    ...deps,
    ...deps.model,
    metrics,
    busy: () => sessions.activeCount > 0,
  });
  const voice = startVoice({
    bus,
    log,
    epoch,
    settings: config.settings.voice,
    synthesizer: config.synthesizer,
    storeTimeoutMs,
    lost,
  });
  const controls = [
    ...sampling.serve(),
    bus.subscribe(toolsChanged, {}, () => void catalog.refresh()),
    bus.serve(controlCancel, async ({ sessionId, turnId }) => ({ cancelled: sessions.cancel(sessionId, turnId) })),
    bus.serve(controlModels, async ({ name, summaries = false }) => {
      const selected = name === undefined ? provider : namedModel(models, name);
      return { provider: selected.name, model: selected.model, note: selected.note(), ...setup.toolNames(summaries) };
    }),
    bus.serve(controlStreaming, async ({ sessionId }) => ({ call: deps.model.streaming.get(sessionId) })),
    new SentRequests(leaderStore, deps.model.prefixes).serve(bus),
    bus.serve(controlCompact, ({ sessionId, instructions }) => sessions.compact({ sessionId, instructions })),
    bus.serve(controlSessionEnded, async (ended) => {
      await sessionEnded(deps, ended);
      return {};
    }),
  ];
  metrics.set("parley_cost_limit_usd", config.settings.limits.max_usd_per_day);
  exportLeaderFigures(metrics, {
    activeSessions: () => sessions.activeCount,
    queueCounts: () => queue.counts(),
    dayMicroUsd: () => budgets.dayMicroUsd(),
    models: models.configured,
  });
  queue.run();
  void catalog.refresh();
  void provider.prepare().then(() => {
    const note = provider.note();
    return note === null ? undefined : log.warn({ model: provider.model, reason: note }, "model loaded with a note");
  });
  void intake.sweep();
  const idle = setInterval(() => void sessions.compactIdle(), 60_000);
  return {
    leadership,
    sessions,
    async handOver(withinMs) {
      intake.stop();
      // A wake-up that this replica still took would be lost until the next sweep.
      const queueClosed = queue.close();
      clearInterval(idle);
      const memoryStopped = consolidation.stop();
      const schedulerStopped = scheduler.stop();
      const voiceStopped = voice.stop();
      const finishedInTime = await Promise.race([
        sessions.handOver().then(() => true),
        delay(withinMs, false, { ref: false }),
      ]);
      if (!finishedInTime)
        log.warn({ limitMs: withinMs }, "hand-over timed out: the next leader repeats the running steps");
      for (const control of controls) control.close();
      sources.close();
      memory.close();
      // Slow shutdowns must not delay the next leader: their writes are fenced.
      await leadership.release();
      await Promise.all([schedulerStopped, voiceStopped]);
      await memoryStopped;
      await queueClosed;
    },
  };
}
