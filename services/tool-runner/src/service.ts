// Assembles the tool-runner: workspace, sandbox, tools, and the subjects it serves.
import { randomBytes } from "node:crypto";
import { totalmem } from "node:os";
import { join } from "node:path";
import {
  leaderChanged,
  toolAlive,
  toolCall,
  toolCancel,
  toolCatalog,
  toolProgress,
  toolRequirements,
  callToken,
} from "@parley/contracts";
import {
  faultPoint,
  openChassis,
  openLog,
  serveHealthReport,
  Startup,
  version,
  type Logger,
  type RunningService,
  type StartContext,
} from "@parley/chassis";
import { FairSemaphore, omitUndefined } from "@parley/kit";
import { openCheckpoints } from "./snapshots/open.ts";
import type { RewindTimes } from "./snapshots/rewind.ts";
import type { Config } from "./config.ts";
import { createEvents } from "./events.ts";
import { exportWorkspace, healthDetails, hideFromCommands, warnAboutIsolation } from "./health.ts";
import { createAttachmentStore } from "./tool/attachments.ts";
import { DocumentCache, Documents } from "./documents/documents.ts";
import { documentsOverBus } from "./documents/client.ts";
import { missingPrograms } from "./documents/requirements.ts";
import { removeAbandonedSearchFolders } from "./documents/search-folder.ts";
import { openExecutor } from "./sandbox/executor.ts";
import { containmentOf, describeIsolation, isolationTag } from "./sandbox/isolation.ts";
import { defaultExecLimits, type ExecLimits } from "./sandbox/limits.ts";
import { serveHooks } from "./hooks/serve-hooks.ts";
import { openMcp } from "./mcp/servers.ts";
import type { ServerTimes } from "./mcp/server-config.ts";
import { serveVoiceTools } from "./mcp/voice-tools.ts";
import { createProcessApi, serveProcesses, serveStop } from "./processes/api.ts";
import { createStoreSync } from "./processes/store-sync.ts";
import { Processes } from "./processes/processes.ts";
import { monitorReplicas, watchTimes, type WatchTimes } from "./processes/replica-monitor.ts";
import { makeProgramFolder } from "./sandbox/program-folder.ts";
import { createRegistry } from "./tool/registry.ts";
import { createSearcher } from "./search/search.ts";
import { callTimes, type CallTimes } from "./calls/call-dependencies.ts";
import { Calls } from "./calls/calls.ts";
import { runnerName } from "./tool/claim-decision.ts";
import { EpochGate } from "./calls/epoch.ts";
import { createPersonPrompt } from "./calls/ask-person.ts";
import { createSamplingClient } from "./mcp/sampling.ts";
import { createStepClient } from "./calls/step-client.ts";
import type { Tool } from "./tool/tool.ts";
import { builtInTools } from "./tools/built-in-tools.ts";
import { systemResolver } from "./web/fetch-page.ts";
import { TaintedFiles } from "./workspace/tainted-files.ts";
import { openWorkspace, type Workspace } from "./workspace/workspace.ts";
import { Workspaces } from "./workspace/workspaces.ts";
import { waitForWritable, type NeededFolder } from "./workspace/writable.ts";

/** Maximum number of background processes per replica, independent of the limit per session. */
const maxBackgroundInAll = 64;

/** Time at shutdown to report the background processes that end with this replica; otherwise its next instance reports them. */
const lastWordsMs = 2_000;

/** Replacements for tests. */
export interface Overrides {
  log?: Logger;
  limits?: Partial<ExecLimits>;
  times?: Partial<CallTimes>;
  rewindTimes?: Partial<RewindTimes>;
  mcpTimes?: Partial<ServerTimes>;
  watchTimes?: Partial<WatchTimes>;
  /** Tools in addition to the built-in ones. */
  tools?: readonly Tool[];
  /** Resources that the process has already opened. */
  context?: StartContext;
}

/** Throws ConfigError when the configuration requires something that this machine does not have. */
export async function start(config: Config, overrides: Overrides = {}): Promise<RunningService> {
  const { maxCpuSeconds, maxCpus } = config;
  const limits: ExecLimits = {
    ...defaultExecLimits(totalmem()),
    ...omitUndefined({ maxCpuSeconds, maxCpus }),
    ...overrides.limits,
  };
  const secrets = [
    ...config.hookVariables.values(),
    ...config.execSecrets.values(),
    config.search.provider?.key ?? "",
    ...config.mcp.secrets,
  ].filter((secret) => secret !== "");
  const log = overrides.log ?? openLog(config, secrets);
  const startup = overrides.context?.startup ?? new Startup();
  startup.logTo(log);
  await waitForWritable(neededFolders(config), startup);
  const workspace = await openWorkspace(config.workspace, config.quota, config.stateFolder);
  await makeProgramFolder(config.stateFolder);
  // Set only after the sandbox has been verified.
  const egressLog: { current?: Logger } = {};
  const opening = openExecutor({
    workspace,
    setting: config.isolation,
    minimum: config.minIsolation,
    internet: config.internet,
    bwrap: config.bwrap,
    searchPath: config.searchPath,
    limits,
    secrets: config.execSecrets,
    mounts: config.mounts,
    egress: {
      settings: config.egress,
      resolve: systemResolver,
      onEvent: ({ to, refused, ...sizes }, call) =>
        egressLog.current?.info({ call, server: to, reason: refused, ...sizes }, "command network access handled"),
    },
  });
  const executor = await opening.catch(async (error: unknown) => {
    await workspace[Symbol.asyncDispose]();
    throw error;
  });
  const { isolation } = executor;
  hideFromCommands(log, isolation);
  const chassis = await openChassis(config, { log, context: overrides.context });
  const { bus, metrics } = chassis;
  exportWorkspace(metrics, workspace);
  egressLog.current = log;
  const runner = config.replica;
  const me = { replica: config.replica, incarnation: config.incarnation };
  const around = { limits, isolation: isolationTag(isolation) };
  const key = randomBytes(32).toString("base64url");
  const ledger = createStoreSync({ bus, log, runner: runnerName(me), key, ...around });
  const backgroundLimits = { maxPerSession: config.maxBackground, maxInAll: maxBackgroundInAll };
  const processes = new Processes(runner, backgroundLimits, ledger);
  metrics.collect("parley_background_commands", () => metrics.set("parley_background_commands", processes.running));
  const local = { processes, ...around };
  const mcp = openMcp(config.mcp, { bus, log, runner, root: workspace.root, version, times: overrides.mcpTimes });
  const own = createRegistry([
    ...builtInTools({
      exec: {
        executor,
        limits,
        processes,
        times: config.execTimes,
        secretNames: [...config.execSecrets.keys()],
        hosts: [...config.egress.hosts, ...config.egress.privateHosts],
      },
      processes: createProcessApi(bus, runner, local, ledger, () => watch.others()),
      web: { ...config.web, resolve: systemResolver },
      search: config.search.provider,
    }),
    ...mcp.tools,
    ...(overrides.tools ?? []),
  ]);
  const registry = mcp.around(own);
  await removeAbandonedSearchFolders();
  const searcher = createSearcher(executor.confine);
  const taintedFilesOf = async ({ root }: Workspace) => {
    const files = new TaintedFiles(config.stateFolder, root, runner);
    await files.recover();
    return files;
  };
  const workspaces = new Workspaces({
    main: workspace,
    folders: config.folders,
    folder: join(config.stateFolder, "people"),
    rules: config.quota,
    taintedFilesOf,
  });
  const checkpoints = await openCheckpoints({
    ...chassis,
    config: config.checkpoints,
    workspaces,
    runner: runnerName(me),
    faultPoint,
    times: overrides.rewindTimes,
  });
  const epochs = new EpochGate();
  const line = new FairSemaphore(config.maxConcurrentCalls);
  const events = createEvents(chassis, { running: () => line.held, waiting: () => line.waiting });
  const read = { owner: new DocumentCache(), others: new DocumentCache() };
  const calls = new Calls({
    registry,
    workspaces,
    documents: ({ grant, audience = "owner" }) => new Documents(documentsOverBus(bus, grant), read[audience]),
    attachmentStore: ({ grant }) => createAttachmentStore(bus, grant),
    searcher,
    checkpoint: ({ turnId, rootTurnId = turnId, grant }, at, signal) =>
      checkpoints.forCall({ rootTurnId, grant, workspace: at }, signal),
    steps: createStepClient(bus),
    epochs,
    line,
    me,
    times: { ...callTimes, ...overrides.times },
    alive: (turnId, n, asks) =>
      bus.publish(toolAlive, { turnId, n, runner, ...(asks ? { asks } : {}) }, { call: callToken(turnId, n) }),
    progress: ({ turnId, n }, progress) =>
      bus.publish(toolProgress, { turnId, n, progress }, { call: callToken(turnId, n) }),
    askPerson: (request, asking, claim) =>
      createPersonPrompt({ bus, epoch: () => Math.max(request.epoch, epochs.highest) }, { ...request, claim }, asking),
    sampler: (request) => createSamplingClient({ bus, epoch: () => Math.max(request.epoch, epochs.highest) }, request),
    faultPoint,
    onBug: events.toolFault,
    onEnd: (request, answer, durationMs) => events.callEnded(request, answer.state, durationMs),
  });

  let draining = false;
  const subscriptions = [
    bus.subscribe(leaderChanged, {}, ({ epoch }) => epochs.observe(epoch)),
    bus.subscribe(toolCancel, {}, (event) => calls.cancel(event)),
  ];
  const served = [
    bus.serve(toolCall, async (request) => calls.handle(request)),
    bus.serve(toolRequirements, async ({ bins, env }) => ({
      missingBins: await missingPrograms(bins, config.searchPath),
      missingEnv: env.filter((name) => !config.environmentNames.has(name)),
    })),
    bus.serve(toolCatalog, async () => {
      // Returns the current tools immediately: `toolsChanged` announces servers that start later.
      const statuses = mcp.statuses();
      const containment = containmentOf(isolation);
      return {
        tools: [...registry.descriptors],
        isolation: describeIsolation(isolation),
        contained: containment !== "none",
        containment,
        ...(statuses === undefined ? {} : { mcp: statuses }),
      };
    }),
    ...serveProcesses(bus, runner, local),
    serveStop(bus, runner, processes, ledger),
    ...serveVoiceTools({ bus, runner, servers: mcp.servers, settings: config.settings.voice, epochs }),
  ];
  const { hookVariables: variables } = config;
  const hooks = serveHooks({
    ...chassis,
    hooks: config.settings.hooks,
    variables,
    workspace: workspace.root,
    folder: config.hookFolder,
  });
  serveHealthReport(bus, config, () => ({
    role: "active",
    epoch: epochs.highest === 0 ? null : epochs.highest,
    ready: bus.connected && !draining,
    details: {
      ...healthDetails({ executor, workspace, mcp: mcp.statuses() }),
      running: line.held,
      waiting: line.waiting,
      background: processes.running,
    },
  }));
  const watch = monitorReplicas({ bus, log, me, key }, { ...watchTimes, ...overrides.watchTimes });
  await bus.verifyPermissions();
  log.info({ isolation: isolation.kind, workspace: workspace.root, tools: registry.descriptors.length }, "tools ready");
  warnAboutIsolation(log, isolation);
  if (config.search.provider === null) log.info({ reason: config.search.reason }, "web_search disabled");

  return {
    log,
    metrics,
    unready: () => bus.problem,
    live: () => workspace.check(),
    ended: bus.closed,
    close: async () => {
      draining = true;
      for (const each of [...served, checkpoints, watch]) each.close();
      await Promise.all([calls.drain(config.drainGraceMs), hooks.close(config.drainGraceMs)]);
      await Promise.all([processes.close(), mcp.close()]);
      await ledger.close(lastWordsMs);
      for (const each of subscriptions) each.close();
      await bus.drain();
      await workspaces[Symbol.asyncDispose]();
      await workspace[Symbol.asyncDispose]();
    },
  };
}

function neededFolders({ workspace, stateFolder, checkpoints }: Config): NeededFolder[] {
  return [
    { purpose: "the workspace", path: workspace, variable: "PARLEY_WORKSPACE" },
    { purpose: "the state folder", path: stateFolder, variable: "PARLEY_STATE" },
    ...(checkpoints.enabled
      ? [{ purpose: "the checkpoint folder", path: checkpoints.folder, variable: "PARLEY_CHECKPOINTS" }]
      : []),
  ];
}
