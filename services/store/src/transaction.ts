// The transactions of the store. Fencing: a writer takes the shared advisory lock, then reads the epoch in a SEPARATE
// statement under READ COMMITTED; a takeover takes the same lock exclusively and raises the epoch. One statement, or
// REPEATABLE READ, would read the epoch from before the wait and let a stale writer through.
import { faultPoint } from "@parley/chassis";
import { WireError } from "@parley/contracts";
import { z } from "zod";
import { withClient, type Database, type PoolClient } from "./database.ts";

/** The advisory lock between writers of agent-core and a takeover; `parley.enter` takes the same one. */
export const epochLock = 7_305_510_218;

export interface Guard {
  opId: string;
  /** Null for writers that are not agent-core. */
  epoch: number | null;
}

export interface Done<R> {
  result: R;
  /** Small; remembered with the operation's id. Left out when nothing was changed: asking again is asking anew. */
  memo?: unknown;
}

export interface Operation<R> {
  /** Where a test may make this operation fail: `store.before_<name>`, `store.after_<name>`. */
  name: string;
  run(client: PoolClient): Promise<Done<R>>;
  /** Answers again what `run` answered, from its memo. */
  replay(client: PoolClient, memo: unknown): Promise<R>;
}

const Uuid = z.uuid();

/** Runs an operation once, however often it is asked for. Throws STALE_EPOCH when another leader has taken over. */
export async function perform<R>(database: Database, guard: Guard, operation: Operation<R>): Promise<R> {
  const opId = Uuid.parse(guard.opId);
  return withClient(database, async (client) => {
    try {
      const known = await begin(client, opId, guard.epoch);
      if (known !== undefined) {
        await client.query("COMMIT");
        return await operation.replay(client, known);
      }
      const { result, memo } = await operation.run(client);
      faultPoint(`store.before_${operation.name}`);
      // The id goes in with the commit: one round trip, and the id is known exactly when the work is.
      const remember =
        memo === undefined
          ? ""
          : `INSERT INTO parley.ops (op_id, result) VALUES ('${opId}', ${client.escapeLiteral(JSON.stringify(memo))});`;
      await client.query(`${remember} COMMIT`);
      faultPoint(`store.after_${operation.name}`);
      return result;
    } catch (error) {
      await client.query("ROLLBACK").catch(() => undefined);
      const known = await recall(client, opId, error);
      if (known === undefined) throw error;
      return operation.replay(client, known);
    }
  });
}

/** Opens the transaction, takes the fence and looks the operation up, in one round trip; see `parley.enter` in migrations/. */
async function begin(client: PoolClient, opId: string, epoch: number | null): Promise<unknown> {
  const replies = (await client.query(
    `BEGIN ISOLATION LEVEL READ COMMITTED; SELECT current_epoch, known FROM parley.enter('${opId}', ${epoch ?? "NULL"})`,
  )) as unknown as { rows: { current_epoch: number | null; known: string | null }[] }[];
  const { current_epoch: current, known } = only(replies.at(-1)?.rows ?? []);
  if (epoch !== null && current !== epoch) {
    throw new WireError("STALE_EPOCH", `epoch ${epoch} is over; the current one is ${String(current)}`);
  }
  return known === null ? undefined : (JSON.parse(known) as unknown);
}

/** After a failure: another try of the same operation may have committed in the meantime. */
async function recall(client: PoolClient, opId: string, error: unknown): Promise<unknown> {
  if (WireError.is(error, "STALE_EPOCH", "FENCED", "UNAVAILABLE")) return undefined;
  const found = await client
    .query<{ result: string }>("SELECT result FROM parley.ops WHERE op_id = $1", [opId])
    .catch(() => undefined);
  const row = found?.rows[0];
  return row === undefined ? undefined : (JSON.parse(row.result) as unknown);
}

/** A plain transaction, for writes that are idempotent by their own keys. */
export async function transact<R>(database: Database, work: (client: PoolClient) => Promise<R>): Promise<R> {
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

/** The first row of a statement that always has one. */
export function only<T>(rows: T[]): T {
  const row = rows[0];
  if (row === undefined) throw new Error("statement returned no row");
  return row;
}
