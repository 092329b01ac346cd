// The transactions of the store. Fencing: a writer takes the shared advisory lock, then reads the epoch in a SEPARATE statement under
// READ COMMITTED. A takeover takes the same lock exclusively and raises the epoch. One statement, or REPEATABLE READ, would read the
// epoch from before the wait and accept a stale writer.
import { faultPoint } from "@parley/chassis";
import { WireError, type InlineSettlement } from "@parley/contracts";
import { z } from "zod";
import { DatabaseError, type QueryConfig } from "pg";
import { batchWrites, withClient, type Database, type PoolClient } from "./database.ts";

export interface Guard {
  opId: string;
  /** Null for writers that are not agent-core. */
  epoch: number | null;
  /** A session to lock before the work begins. */
  lockSession?: string;
  /** Results of this turn's pure calls, settled in the round trip that opens the transaction. */
  turnId?: string | undefined;
  settled?: InlineSettlement | undefined;
}

/** The session row when it was locked; undefined when there is none or none was requested. */
export interface LockedSession {
  key: string;
  seq: number;
}

export interface Outcome<R> {
  result: R;
  /** Small value stored under the operation id. Omitted when nothing changed: a repeated request then runs again. */
  memo?: unknown;
}

export interface Operation<R> {
  /** Part of the fault points `store.before_<name>` and `store.after_<name>`. */
  name: string;
  /**
   * A statement that needs no answer of the store first. It is sent together with the start of the transaction, which saves a round trip;
   * a stale epoch or a known operation rolls it back.
   */
  first?: QueryConfig | undefined;
  /** `rows`: of the first statement. */
  run(client: PoolClient, session: LockedSession | undefined, rows: object[]): Promise<Outcome<R>>;
  /** Returns the earlier result of `run`, from its memo; omitted: the memo is the result. */
  replay?(client: PoolClient, memo: unknown): Promise<R>;
}

// Multi-command statements have no parameters: ids in their text are validated UUIDs.
const Uuid = z.uuid();

/** Runs an operation exactly once per operation id. Throws STALE_EPOCH when another leader has taken over. */
export async function runOperation<R>(database: Database, guard: Guard, operation: Operation<R>): Promise<R> {
  const opId = Uuid.parse(guard.opId);
  const replay = async (client: PoolClient, memo: unknown) => operation.replay?.(client, memo) ?? (memo as R);
  return withClient(database, async (client) => {
    try {
      const { known, session, rows } = await begin(client, opId, guard, operation.first);
      if (known !== undefined) {
        // The first statement must have no effect; a settlement that came with it has been committed before.
        await client.query("ROLLBACK");
        return await replay(client, known);
      }
      const { result, memo } = await operation.run(client, session, rows);
      faultPoint(`store.before_${operation.name}`);
      // The id is stored with the commit: one round trip, and id and work become visible together.
      if (memo !== undefined) {
        await client.query(`EXECUTE parley_remember('${opId}', ${client.escapeLiteral(JSON.stringify(memo))}); COMMIT`);
        faultPoint(`store.after_${operation.name}`);
        return result;
      }
      // Nothing changed here, perhaps because an overlapping attempt of the same operation was faster: its result counts.
      const [, earlier] = await Promise.all(
        batchWrites(client, () => [client.query("COMMIT"), remembered(client, opId)]),
      );
      return earlier === undefined ? result : await replay(client, earlier);
    } catch (error) {
      await client.query("ROLLBACK").catch(() => undefined);
      const known = await recall(client, opId, error);
      if (known === undefined) throw error;
      return replay(client, known);
    }
  });
}

/**
 * Runs an operation that is one statement, which takes the fence and remembers the operation itself. Returns its row; undefined if it raised
 * a violation of a constraint, which rolls it back: `runOperation` then finds out why.
 */
export async function runStatement<R extends object>(
  database: Database,
  name: string,
  statement: QueryConfig,
): Promise<R | undefined> {
  faultPoint(`store.before_${name}`);
  try {
    const { rows } = await database.query<R>(statement);
    faultPoint(`store.after_${name}`);
    return singleRow(rows);
  } catch (error) {
    if (error instanceof DatabaseError && error.code?.startsWith("23") === true) return undefined;
    throw error;
  }
}

/** The statements that open a transaction, take the fence and settle results. */
function opening(client: PoolClient, opId: string, guard: Guard): string {
  const session = guard.lockSession === undefined ? "NULL" : `'${Uuid.parse(guard.lockSession)}'`;
  const enter = `EXECUTE parley_enter('${opId}', ${guard.epoch ?? "NULL"}, ${session})`;
  return `BEGIN ISOLATION LEVEL READ COMMITTED; ${enter}${settling(client, guard)}`;
}

/** Opens the transaction, checks the fence, looks up the operation and runs `first` in one round trip; see `parley.enter` in migrations/. */
async function begin(
  client: PoolClient,
  opId: string,
  guard: Guard,
  first: QueryConfig | undefined,
): Promise<{ known: unknown; session: LockedSession | undefined; rows: object[] }> {
  // The connection is pipelined: the second statement is sent without waiting, and PostgreSQL runs it after the fence was taken.
  const [opened, ran] = await Promise.allSettled(
    batchWrites(client, () => [
      client.query<object>(opening(client, opId, guard)),
      first === undefined ? Promise.resolve(undefined) : client.query<object>(first),
    ]),
  );
  if (opened.status === "rejected") throw opened.reason;
  const row = singleRow((opened.value as unknown as { rows: EnterRow[] }[])[1]?.rows ?? []);
  if (guard.epoch !== null && row.current_epoch !== guard.epoch) {
    throw new WireError(
      "STALE_EPOCH",
      `epoch ${guard.epoch} is no longer valid; the current one is ${String(row.current_epoch)}`,
    );
  }
  const known = row.known === null ? undefined : (JSON.parse(row.known) as unknown);
  // A known operation may fail when it runs again; its earlier result counts.
  if (ran.status === "rejected" && known === undefined) throw ran.reason;
  return {
    known,
    rows: ran.status === "fulfilled" ? (ran.value?.rows ?? []) : [],
    session: row.session_key === null ? undefined : { key: row.session_key, seq: row.session_seq ?? 0 },
  };
}

/** Statement that settles results. A stale epoch rolls it back; for a known operation it has the same effect again. */
function settling(client: PoolClient, { turnId, settled }: Guard): string {
  if (turnId === undefined || settled === undefined || settled.length === 0) return "";
  const array = (texts: string[]) => `ARRAY[${texts.join(", ")}]`;
  const numbers = array(settled.map(({ n }) => String(n)));
  const states = array(settled.map(({ state }) => client.escapeLiteral(state)));
  const results = array(settled.map(({ result }) => client.escapeLiteral(JSON.stringify(result))));
  return `; EXECUTE parley_settle('${Uuid.parse(turnId)}', ${numbers}, ${states}, ${results})`;
}

interface EnterRow {
  current_epoch: number | null;
  known: string | null;
  session_key: string | null;
  session_seq: number | null;
}

/** After a failure: another attempt of the same operation may have committed in the meantime. */
async function recall(client: PoolClient, opId: string, error: unknown): Promise<unknown> {
  if (WireError.is(error, "STALE_EPOCH", "FENCED", "UNAVAILABLE")) return undefined;
  return remembered(client, opId).catch(() => undefined);
}

/** The memo of an operation that has committed; undefined if none has. */
async function remembered(client: PoolClient, opId: string): Promise<unknown> {
  const { rows } = await client.query<{ result: string }>("SELECT result FROM parley.ops WHERE op_id = $1", [opId]);
  return rows[0] === undefined ? undefined : (JSON.parse(rows[0].result) as unknown);
}

/** A plain transaction, for writes that are idempotent by their own keys. */
export async function runTransaction<R>(database: Database, work: (client: PoolClient) => Promise<R>): Promise<R> {
  return withClient(database, async (client) => {
    try {
      await client.query("BEGIN ISOLATION LEVEL READ COMMITTED");
      const result = await work(client);
      await client.query("COMMIT");
      return result;
    } catch (error) {
      await client.query("ROLLBACK").catch(() => undefined);
      throw error;
    }
  });
}

/** A change of several statements. With `opId`, a repeated request gets the first result, also while the first attempt still runs. */
export async function runChange<R>(
  database: Database,
  name: string,
  opId: string | undefined,
  work: (client: PoolClient) => Promise<R>,
): Promise<R> {
  if (opId === undefined) return runTransaction(database, work);
  return runOperation<R>(
    database,
    { opId, epoch: null },
    {
      name,
      async run(client) {
        const result = await work(client);
        return { result, memo: result };
      },
    },
  );
}

/** The first row of a statement that always has one. */
export function singleRow<T>(rows: T[]): T {
  const row = rows[0];
  if (row === undefined) throw new Error("statement returned no row");
  return row;
}
