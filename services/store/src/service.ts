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
import type { BlobRules } from "./blobs/put.ts";
import { openBackends } from "./blobs/open.ts";
import { openDatabase, type Database } from "./db/database.ts";
import { isEncrypted } from "./db/database-url.ts";
import { serveMemory, type ServedMemory } from "./handlers/memory/serve.ts";
import { knownMigrations } from "./migrate.ts";
import { startRetentionJob } from "./retention/retention.ts";
import { serveCalls } from "./serve-calls.ts";
import * as blobs from "./handlers/blobs/blobs.ts";
import * as checkpoints from "./handlers/checkpoints/checkpoints.ts";
import * as appendTurn from "./handlers/turns/append.ts";
import * as approvals from "./handlers/questions/approvals.ts";
import * as claimTurn from "./handlers/turns/claim.ts";
import * as commitStep from "./handlers/steps/commit.ts";
import * as compact from "./handlers/sessions/compact.ts";
import * as contacts from "./handlers/contacts/contacts.ts";
import * as documentLines from "./handlers/documents/trust.ts";
import * as documents from "./handlers/documents/documents.ts";
import * as endTurn from "./handlers/turns/end.ts";
import * as fireSchedules from "./handlers/schedules/fire.ts";
import * as heartbeat from "./handlers/schedules/heartbeat.ts";
import * as history from "./handlers/sessions/history.ts";
import * as inbox from "./handlers/inbox/inbox.ts";
import * as leadership from "./handlers/coordination/leadership.ts";
import * as leases from "./handlers/coordination/leases.ts";
import * as mcp from "./handlers/coordination/mcp.ts";
import * as outbox from "./handlers/outbox/outbox.ts";
import * as rewindPermits from "./handlers/checkpoints/rewind-permits.ts";
import * as parkTurn from "./handlers/turns/park.ts";
import * as processes from "./handlers/processes/processes.ts";
import * as questions from "./handlers/questions/questions.ts";
import * as queue from "./handlers/inbox/queue.ts";
import * as sessionFork from "./handlers/sessions/fork.ts";
import * as sessionRoutes from "./handlers/sessions/routes.ts";
import * as sampled from "./handlers/steps/sampling.ts";
import * as schedules from "./handlers/schedules/schedules.ts";
import * as sessions from "./handlers/sessions/sessions.ts";
import * as spawn from "./handlers/turns/spawn.ts";
import * as steps from "./handlers/steps/steps.ts";
import * as todos from "./handlers/sessions/todos.ts";
import * as turns from "./handlers/turns/turns.ts";
import * as usage from "./handlers/sessions/usage.ts";
import * as voice from "./handlers/voice/sessions.ts";
import * as voiceHeard from "./handlers/voice/utterances.ts";
import * as voiceReplies from "./handlers/voice/replies.ts";

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
  const places = await openBackends(config, log);
  const checkpointDays = config.settings.checkpoints.retention_days;
  startRetentionJob(
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
    bus.serve(store.stepSampled, (input) => sampled.recordSampling(database, input)),
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
    bus.serve(store.voiceWork, (input) => voice.listActive(database, input)),
    bus.serve(store.voiceClaim, (input) => voice.claim(database, input)),
    bus.serve(store.voiceMove, (input) => voice.transition(database, bus, input)),
    bus.serve(store.voiceAdvance, (input) => voiceHeard.advance(database, bus, input)),
    bus.serve(store.spokenPending, (input) => voiceReplies.pending(database, input)),
    bus.serve(store.spokenSettle, (input) => voiceReplies.settle(database, bus, input)),
    bus.serve(store.processEnd, (input) => processes.end(database, bus, input)),
    bus.serve(store.processRenew, (input) => processes.renew(database, input)),
    bus.serve(store.processLose, (input) => processes.markLost(database, bus, input)),
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
