// The store service: waits for the schema, serves PostgreSQL over the bus, and runs the retention.
import { setTimeout as delay } from "node:timers/promises";
import {
  explainLinkFailure,
  openChassis,
  serveHealthReport,
  type Chassis,
  type RunningService,
  type StartContext,
} from "@parley/chassis";
import { outboxReady, store, type InputOf } from "@parley/contracts";
import type { StoreConfig } from "./config.ts";
import type { BlobRules } from "./blobs/keep.ts";
import { openPlaces } from "./blobs/open.ts";
import { openDatabase, type Database } from "./database.ts";
import { isEncrypted } from "./database-url.ts";
import { serveMemory, type ServedMemory } from "./memory/serve.ts";
import { knownMigrations } from "./migrate.ts";
import { keepForgetting } from "./retention.ts";
import { serveCalls } from "./serve-calls.ts";
import * as blobs from "./verbs/blobs.ts";
import * as checkpoints from "./verbs/checkpoints.ts";
import * as appendTurn from "./verbs/append-turn.ts";
import * as approvals from "./verbs/approvals.ts";
import * as claimTurn from "./verbs/claim-turn.ts";
import * as commitStep from "./verbs/commit-step.ts";
import * as compact from "./verbs/compact.ts";
import * as contacts from "./verbs/contacts.ts";
import * as documentLines from "./verbs/document-lines.ts";
import * as documents from "./verbs/documents.ts";
import * as endTurn from "./verbs/end-turn.ts";
import * as fireSchedules from "./verbs/fire-schedules.ts";
import * as heartbeat from "./verbs/heartbeat.ts";
import * as history from "./verbs/history.ts";
import * as inbox from "./verbs/inbox.ts";
import * as leadership from "./verbs/leadership.ts";
import * as leases from "./verbs/leases.ts";
import * as mcp from "./verbs/mcp.ts";
import * as outbox from "./verbs/outbox.ts";
import * as rewindPermits from "./verbs/rewind-permits.ts";
import * as parkTurn from "./verbs/park-turn.ts";
import * as processes from "./verbs/processes.ts";
import * as questions from "./verbs/questions.ts";
import * as queue from "./verbs/queue.ts";
import * as sessionFork from "./verbs/session-fork.ts";
import * as sessionRoutes from "./verbs/session-routes.ts";
import * as sampled from "./verbs/sampled.ts";
import * as schedules from "./verbs/schedules.ts";
import * as sessions from "./verbs/sessions.ts";
import * as spawn from "./verbs/spawn.ts";
import * as steps from "./verbs/steps.ts";
import * as todos from "./verbs/todos.ts";
import * as turns from "./verbs/turns.ts";
import * as usage from "./verbs/usage.ts";
import * as voice from "./verbs/voice.ts";
import * as voiceHeard from "./verbs/voice-heard.ts";
import * as voiceReplies from "./verbs/voice-replies.ts";

export async function start(
  config: StoreConfig,
  overrides: { chassis?: Chassis; context?: StartContext } = {},
): Promise<RunningService> {
  const chassis =
    overrides.chassis ?? (await openChassis(config, { secrets: secretsOf(config), context: overrides.context }));
  const { bus, log, metrics } = chassis;
  const database = openDatabase(config.databaseUrl, config.poolSize, (error) =>
    log.warn({ err: error }, "idle database connection lost"),
  );
  await waitForSchema(database, chassis);

  const stopping = new AbortController();
  const { max_bytes: maxBytes, types, keep_hours: keepHours } = config.settings.attachments;
  const places = await openPlaces(config, log);
  const checkpointDays = config.settings.checkpoints.retention_days;
  keepForgetting(
    database,
    { ...config, keepHours, places, checkpointDays },
    config.settings.session,
    log,
    stopping.signal,
  );
  const memory = await serveMemory(chassis, database, config.settings.memory);
  const blobRules = { maxBytes, types, places };
  const served = [
    ...memory.served,
    ...serveVerbs(chassis, database, blobRules, memory),
    ...serveCalls(bus, database, blobRules, memory),
  ];
  serveHealthReport(bus, config, () => ({
    role: "active",
    epoch: null,
    ready: bus.connected,
    details: {
      databaseEncrypted: isEncrypted(config.databaseUrl),
      connections: database.pool.totalCount,
      waiting: database.pool.waitingCount,
      attachments: places.preferred?.name ?? "database",
    },
  }));
  await bus.permitted();

  return {
    metrics,
    log,
    ready: () => bus.connected,
    ended: bus.closed,
    async close() {
      stopping.abort();
      for (const each of served) each.close();
      await bus.drain();
      await memory.idle();
      await database.pool.end();
    },
  };
}

function secretsOf({ blobBucket }: StoreConfig): string[] {
  const { secretAccessKey, sessionToken } = blobBucket?.credentials ?? {};
  return [secretAccessKey, sessionToken].filter((secret) => secret !== undefined);
}

function serveVerbs({ bus }: Chassis, database: Database, blobRules: BlobRules, memory: ServedMemory) {
  const thenIndexed = async <R>(change: Promise<R>): Promise<R> => {
    const output = await change;
    memory.changed();
    return output;
  };
  /** Notifies the gateways after the commit. */
  const announce = (outgoing: InputOf<typeof store.stepCommit>["outgoing"]) => {
    for (const { address } of outgoing)
      bus.publish(outboxReady, { account: address.account }, { channel: address.channel });
  };
  return [
    bus.serve(store.inboxPut, (input) => inbox.put(database, bus, input)),
    bus.serve(store.inboxGet, (input) => inbox.get(database, input)),
    bus.serve(store.inboxPending, (input) => inbox.pending(database, input)),
    bus.serve(store.turnClaim, (input) => claimTurn.claim(database, bus, input)),
    bus.serve(store.stepCommit, async (input) => {
      const output = await commitStep.commit(database, bus, input);
      announce(input.outgoing);
      return output;
    }),
    bus.serve(store.turnFinish, async (input) => {
      const output = await endTurn.finish(database, bus, input);
      announce(input.outgoing);
      return output;
    }),
    bus.serve(store.turnCancel, (input) => turns.cancel(database, bus, input)),
    bus.serve(store.turnGet, (input) => turns.get(database, input)),
    bus.serve(store.stepSettle, async (input) => {
      const output = await steps.settle(database, bus, input);
      announce(input.outgoing ?? []);
      return output;
    }),
    bus.serve(store.stepSampled, (input) => sampled.keepSampled(database, input)),
    bus.serve(store.turnAppend, (input) => appendTurn.append(database, input)),
    bus.serve(store.turnPark, (input) => parkTurn.park(database, input)),
    bus.serve(store.turnSpawn, (input) => spawn.spawn(database, bus, input)),
    bus.serve(store.approvalRequest, (input) => approvals.ask(database, bus, input)),
    bus.serve(store.approvalDecide, (input) => approvals.decide(database, bus, input)),
    bus.serve(store.approvalGet, (input) => approvals.get(database, input)),
    bus.serve(store.approvalList, (input) => approvals.list(database, input)),
    bus.serve(store.inboxList, (input) => queue.list(database, input)),
    bus.serve(store.inboxEdit, (input) => queue.edit(database, bus, input)),
    bus.serve(store.inboxFlush, (input) => queue.flush(database, bus, input)),
    bus.serve(store.sessionUpdate, (input) => sessions.update(database, bus, input)),
    bus.serve(store.sessionOpen, (input) => sessionRoutes.open(database, bus, input)),
    bus.serve(store.sessionBind, (input) => sessionRoutes.bind(database, bus, input)),
    bus.serve(store.sessionFork, (input) => sessionFork.fork(database, bus, input)),
    bus.serve(store.sessionArchive, (input) => sessions.archive(database, input)),
    bus.serve(store.sessionView, (input) => sessions.view(database, input)),
    bus.serve(store.questionAsk, async (input) => {
      const output = await questions.ask(database, input);
      announce(input.outgoing);
      return output;
    }),
    bus.serve(store.usageReport, (input) => usage.report(database, input)),
    bus.serve(store.sessionCompact, (input) => compact.compact(database, input)),
    bus.serve(store.sessionTodos, (input) => todos.put(database, input)),
    bus.serve(store.prefixPut, (input) => compact.putPrefix(database, input)),
    bus.serve(store.prefixGet, (input) => compact.getPrefix(database, input)),
    bus.serve(store.sessionGet, (input) => sessions.get(database, input)),
    bus.serve(store.sessionList, (input) => sessions.list(database, input)),
    bus.serve(store.sessionMessages, (input) => history.list(database, input)),
    bus.serve(store.eventList, (input) => sessions.events(database, input)),
    bus.serve(store.outboxPut, (input) => outbox.put(database, bus, input)),
    bus.serve(store.outboxGet, (input) => outbox.get(database, input)),
    bus.serve(store.outboxClaim, (input) => outbox.claim(database, input)),
    bus.serve(store.outboxSettle, (input) => outbox.settle(database, input)),
    bus.serve(store.leadershipAcquire, (input) => leadership.acquire(database, input)),
    bus.serve(store.leaseAcquire, (input) => leases.acquire(database, input)),
    bus.serve(store.leaseRenew, (input) => leases.renew(database, input)),
    bus.serve(store.leaseRelease, (input) => leases.release(database, bus, input)),
    bus.serve(store.contactGet, (input) => contacts.get(database, input)),
    bus.serve(store.pairingRequest, async (input) => {
      const output = await contacts.requestPairing(database, input);
      if (output.status === "created" && input.outgoing !== undefined) announce([input.outgoing]);
      return output;
    }),
    bus.serve(store.pairingList, () => contacts.listPairings(database)),
    bus.serve(store.pairingApprove, (input) => contacts.approvePairing(database, input)),
    bus.serve(store.checkpointList, (input) => checkpoints.list(database, input)),
    bus.serve(store.checkpointUnreferenced, (input) => checkpoints.unreferenced(database, input)),
    bus.serve(store.rewindPermit, (input) => rewindPermits.permit(database, input)),
    bus.serve(store.documentList, (input) => documents.list(database, input)),
    bus.serve(store.documentGet, (input) => documents.get(database, input)),
    bus.serve(store.documentPut, (input) => thenIndexed(documents.put(database, bus, input))),
    bus.serve(store.documentDelete, (input) => thenIndexed(documents.remove(database, bus, input))),
    bus.serve(store.blobBegin, (input) => blobs.begin(database, blobRules, input)),
    bus.serve(store.blobPut, (input) => blobs.put(database, input)),
    bus.serve(store.blobCommit, (input) => blobs.commit(database, blobRules, input)),
    bus.serve(store.blobHead, (input) => blobs.head(database, input)),
    bus.serve(store.blobGet, (input) => blobs.get(database, blobRules, input)),
    bus.serve(store.documentRestore, (input) => thenIndexed(documents.restore(database, bus, input))),
    bus.serve(store.documentHistory, (input) => documents.history(database, input)),
    bus.serve(store.documentLines, (input) => documentLines.lines(database, input)),
    bus.serve(store.documentVouch, (input) => thenIndexed(documentLines.vouch(database, bus, input))),
    bus.serve(store.scheduleCreate, (input) => schedules.create(database, bus, input)),
    bus.serve(store.scheduleUpdate, (input) => schedules.update(database, bus, input)),
    bus.serve(store.scheduleRemove, (input) => schedules.remove(database, input)),
    bus.serve(store.scheduleGet, (input) => schedules.get(database, input)),
    bus.serve(store.scheduleList, (input) => schedules.list(database, input)),
    bus.serve(store.scheduleHistory, (input) => schedules.history(database, input)),
    bus.serve(store.scheduleRun, (input) => fireSchedules.run(database, bus, input)),
    bus.serve(store.scheduleDue, (input) => fireSchedules.due(database, input)),
    bus.serve(store.scheduleFire, (input) => fireSchedules.fire(database, bus, input)),
    bus.serve(store.heartbeatFire, (input) => heartbeat.fire(database, bus, input)),
    bus.serve(store.voiceOpen, (input) => voice.begin(database, input)),
    bus.serve(store.voiceStop, (input) => voice.stop(database, bus, input)),
    bus.serve(store.voiceGet, (input) => voice.get(database, input)),
    bus.serve(store.voiceWork, (input) => voice.work(database, input)),
    bus.serve(store.voiceClaim, (input) => voice.claim(database, input)),
    bus.serve(store.voiceMove, (input) => voice.move(database, bus, input)),
    bus.serve(store.voiceAdvance, (input) => voiceHeard.advance(database, bus, input)),
    bus.serve(store.spokenPending, (input) => voiceReplies.pending(database, input)),
    bus.serve(store.spokenSettle, (input) => voiceReplies.settle(database, bus, input)),
    bus.serve(store.processEnd, (input) => processes.end(database, bus, input)),
    bus.serve(store.processRenew, (input) => processes.renew(database, input)),
    bus.serve(store.processLose, (input) => processes.lose(database, bus, input)),
    bus.serve(store.processList, (input) => processes.list(database, input)),
    bus.serve(store.mcpSwitches, () => mcp.list(database)),
    bus.serve(store.mcpSwitch, (input) => mcp.change(database, bus, input)),
  ];
}

/** Waits until the database is reachable and has the newest migration of this build. */
async function waitForSchema(database: Database, { startup }: Chassis): Promise<void> {
  const wanted = knownMigrations().at(-1);
  for (;;) {
    const missing = await database.pool.query("SELECT FROM parley.schema_migrations WHERE name = $1", [wanted]).then(
      ({ rowCount }) => (rowCount === 1 ? null : `migration ${wanted} is not applied yet; run the migrations`),
      (error: unknown) => explainLinkFailure(error, "DATABASE_CA_FILE"),
    );
    if (missing === null) break;
    startup.waiting("the database", missing);
    await delay(250);
  }
  startup.arrived("the database");
}
