// The pool of PostgreSQL connections, and the mapping of its errors to wire errors.
import { WireError } from "@parley/contracts";
import { drizzle, type NodePgDatabase } from "drizzle-orm/node-postgres";
import {
  DatabaseError,
  Pool,
  types,
  type ClientBase,
  type PoolClient,
  type QueryConfig,
  type QueryResult,
  type QueryResultRow,
} from "pg";

export type { PoolClient };

export interface Database {
  pool: Pool;
  /** Query builder over the same pool, for queries outside of the hot path. */
  orm: NodePgDatabase;
  /** Runs one statement. Throws UNAVAILABLE when the connection is lost, INVALID_INPUT for malformed ids. */
  query<R extends QueryResultRow>(statement: string | QueryConfig, values?: unknown[]): Promise<QueryResult<R>>;
}

/** The database, or a client in a transaction. */
export type Queryable = Pick<Database, "query">;

const int8 = types.builtins.INT8;
const timestamptz = types.builtins.TIMESTAMPTZ;

/** Statements at the beginning and end of operations, prepared once per connection; see operation.ts. */
const statements = `
  PREPARE parley_enter(uuid, bigint, uuid) AS SELECT * FROM parley.enter($1, $2, $3);
  PREPARE parley_remember(uuid, text) AS INSERT INTO parley.ops (op_id, result) VALUES ($1, $2);
  PREPARE parley_settle(uuid, int[], text[], text[]) AS UPDATE parley.steps
    SET state = settled.state, result = settled.result, finished_at = now()
    FROM unnest($2, $3, $4) AS settled(n, state, result)
    WHERE steps.turn_id = $1 AND steps.n = settled.n AND kind = 'tool' AND class = 'pure' AND message_seq IS NULL`;

/** Returns a promise, which the pool awaits, although the type of `onConnect` has none. */
function prepare(client: ClientBase): unknown {
  // A connection that breaks in use fails its query; without a listener it would also end the process.
  client.on("error", () => undefined);
  return client.query(statements);
}

/** Opens no connection yet. `onError` is called for idle connections that break. */
export function openDatabase(url: string, poolSize: number, onError: (error: Error) => void): Database {
  const pool = new Pool({
    connectionString: url,
    max: poolSize,
    connectionTimeoutMillis: 5_000,
    keepAlive: true,
    // Statements are sent without waiting for the answers to earlier ones; their order stays.
    pipeline: true,
    // Not `verify`: the pool would lose a connection that is ready after its caller has given up.
    onConnect: prepare,
    // The large statements cost more to plan than to run.
    options: "-c TimeZone=UTC -c plan_cache_mode=force_generic_plan",
    types: {
      getTypeParser: (oid, format) => {
        // Counters stay far below 2^53.
        if (oid === int8 && format !== "binary") return Number;
        if (oid === timestamptz && format !== "binary") return (text: string) => new Date(text).toISOString();
        return types.getTypeParser(oid, format) as (text: string) => unknown;
      },
    },
  });
  pool.on("error", onError);
  const database: Database = {
    pool,
    orm: drizzle(pool),
    query: (statement, values) => withClient(database, (client) => client.query(statement, values)),
  };
  return database;
}

/**
 * Sends the statements of `send` with one write to the socket: on loopback and on fast networks a write costs about as much processor time
 * as a small statement, and each wakes PostgreSQL.
 */
export function batchWrites<R>({ connection: { stream } }: PoolClient, send: () => R): R {
  stream.cork();
  try {
    return send();
  } finally {
    stream.uncork();
  }
}

/** Runs `work` on one connection and discards a broken connection. */
export async function withClient<R>(database: Database, work: (client: PoolClient) => Promise<R>): Promise<R> {
  const client = await database.pool.connect().catch((error: unknown) => {
    throw asWireError(error);
  });
  let broken = false;
  try {
    return await work(client);
  } catch (error) {
    broken = !(error instanceof DatabaseError) && !WireError.is(error);
    throw asWireError(error);
  } finally {
    client.release(broken);
  }
}

/** Connection losses become UNAVAILABLE (the caller retries), malformed ids INVALID_INPUT; other errors are returned unchanged. */
function asWireError(error: unknown): unknown {
  if (error instanceof DatabaseError) {
    const code = error.code ?? "";
    // Class 08 connection, 53 resources, 57 operator intervention, 25P03/25P04 a transaction timeout, 55P03 a lock timeout.
    if (/^(08|53|57P|25P0[34]|55P03|57014|40)/.test(code)) {
      return new WireError("UNAVAILABLE", `database: ${error.message}`, { cause: error });
    }
    if (code === "22P02") return new WireError("INVALID_INPUT", `database: ${error.message}`, { cause: error });
    return error;
  }
  if (error instanceof Error && isConnectionLoss(error)) {
    return new WireError("UNAVAILABLE", `database: ${error.message}`, { cause: error });
  }
  return error;
}

function isConnectionLoss(error: Error & { code?: unknown }): boolean {
  if (typeof error.code === "string" && /^E(CONN|PIPE|HOST|NET|TIMEDOUT)/.test(error.code)) return true;
  return /Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error/.test(
    error.message,
  );
}
