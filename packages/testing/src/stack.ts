// Real servers for a test file, in a temporary folder, on request with the real store.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connectBus, type Bus } from "@parley/bus";
import { createLogger, readBaseConfig, type BaseConfig, type RunningService } from "@parley/chassis";
import { natsPermissions, roles, type NatsPermissions, type Role, type ServiceName } from "@parley/contracts";
import { startNats, startPostgres, startRedis, type NatsServer, type RedisServer } from "@parley/local";
import { sharedDatabase, type TestDatabase } from "./shared-postgres.ts";
import { migrate, readConfig as readStoreConfig, start as startStore } from "@parley/store";

/** The resources that a test releases at its end, last opened first. */
export class Cleanup implements AsyncDisposable {
  readonly #steps: (() => Promise<unknown>)[] = [];

  add(step: () => Promise<unknown>): void {
    this.#steps.push(step);
  }

  /** Runs every step, then throws what failed. */
  async [Symbol.asyncDispose](): Promise<void> {
    const errors: unknown[] = [];
    for (const step of this.#steps.toReversed()) {
      try {
        await step();
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length === 1) throw errors[0];
    if (errors.length > 1) throw new AggregateError(errors, `${errors.length} steps of the cleanup failed`);
  }
}

/** A folder that the cleanup removes. */
export async function temporaryFolder(cleanup: Cleanup): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "parley-test-"));
  cleanup.add(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

const quiet = createLogger({ service: "test", replica: "test", level: process.env["PARLEY_LOG_LEVEL"] ?? "silent" });

/** NATS with the users and permissions of a deployment, or with the given ones. */
export async function startTestNats(
  cleanup: Cleanup,
  permissionsOf: (role: Role) => NatsPermissions = (role) => natsPermissions(role, "parley"),
): Promise<NatsServer> {
  const dataDir = join(await temporaryFolder(cleanup), "nats");
  const users = roles.map((role) => ({
    user: role,
    password: `test-${role}`,
    permissions: permissionsOf(role),
  }));
  const server = await startNats({ dataDir, users });
  cleanup.add(() => server.stop());
  return server;
}

/** A migrated database, on the server that the test runner shares among its files, or else on a server of its own. */
export async function startTestPostgres(cleanup: Cleanup): Promise<TestDatabase> {
  const shared = await sharedDatabase(cleanup);
  if (shared !== undefined) return shared;
  const server = await startPostgres({ dataDir: join(await temporaryFolder(cleanup), "postgres") });
  cleanup.add(() => server.stop());
  await migrate(server.ownerUrl);
  return server;
}

export async function startTestRedis(cleanup: Cleanup): Promise<RedisServer> {
  const server = await startRedis({ dataDir: join(await temporaryFolder(cleanup), "redis") });
  cleanup.add(() => server.stop());
  return server;
}

/** A bus connection as one of the roles, with the permissions of the role. */
export async function openTestBus(nats: NatsServer, role: Role, cleanup: Cleanup): Promise<Bus> {
  const bus = await connectBus({ url: nats.urlFor(role), namespace: "parley", role, name: `test-${role}`, log: quiet });
  cleanup.add(() => bus.drain());
  return bus;
}

/** The common configuration of a service inside a test. */
export function testBaseConfig(nats: NatsServer, service: ServiceName, env: Record<string, string> = {}): BaseConfig {
  return readBaseConfig(
    { PARLEY_NATS_URL: nats.urlFor(service), PARLEY_REPLICA: `${service}-1`, PARLEY_LOG_LEVEL: "silent", ...env },
    service,
  );
}

export interface StoreStack {
  postgres: TestDatabase;
  nats: NatsServer;
  store: RunningService;
  /** Another store on the same database, for a test that has closed the first one. */
  startStore(): Promise<void>;
  /** A bus with the permissions of a role. */
  bus(role: Role): Promise<Bus>;
}

/** PostgreSQL, NATS and a migrated, running store; `storeEnv` extends the environment that the stack sets, `nats` replaces the bus. */
export async function startStoreStack(
  cleanup: Cleanup,
  options: { storeEnv?: Record<string, string>; nats?: NatsServer } = {},
): Promise<StoreStack> {
  const [postgres, nats] = await Promise.all([startTestPostgres(cleanup), options.nats ?? startTestNats(cleanup)]);
  const start = () =>
    startStore(readStoreConfig({ DATABASE_URL: postgres.storeUrl }, testBaseConfig(nats, "store", options.storeEnv)));
  const running = await start();
  // A test may close the store before its end.
  let closed: Promise<void> | undefined;
  const store: RunningService = { ...running, close: () => (closed ??= running.close()) };
  cleanup.add(() => store.close());
  const startAnother = async () => {
    const another = await start();
    cleanup.add(() => another.close());
  };
  return { postgres, nats, store, startStore: startAnother, bus: (role) => openTestBus(nats, role, cleanup) };
}
