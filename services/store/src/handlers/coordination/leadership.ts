// The epoch. A takeover waits for writes under the old epoch, then raises it; see operation.ts for the writers.
import type { OutputOf, store } from "@parley/contracts";
import { advisoryLocks } from "../../db/advisory-locks.ts";
import { singleRow, runOperation } from "../../db/operation.ts";
import type { Handlers } from "../handler.ts";

export const leadershipHandlers = {
  leadershipAcquire({ database }, input) {
    return runOperation(
      database,
      { opId: input.opId, epoch: null },
      {
        name: "takeover",
        async run(client) {
          // A paused writer may hold the shared lock; its transaction ends by idle_in_transaction_session_timeout.
          await client.query(`SET LOCAL lock_timeout = '3s'; SELECT pg_advisory_xact_lock(${advisoryLocks.epoch})`);
          const { after } = input;
          if (after !== undefined) {
            // A separate statement after the lock, so that a concurrent takeover is visible.
            const current = await client.query<{ epoch: number }>(
              "SELECT epoch FROM parley.leadership WHERE name = 'agent-core'",
            );
            const { epoch } = singleRow(current.rows);
            if (epoch !== after) return { result: { epoch, unchanged: true as const } };
          }
          const { rows } = await client.query<{ epoch: number }>(
            `WITH raised AS (
             UPDATE parley.leadership SET epoch = epoch + 1, holder = $1, acquired_at = clock_timestamp()
             WHERE name = 'agent-core' RETURNING epoch, holder, acquired_at
           )
           INSERT INTO parley.leadership_log (epoch, holder, acquired_at) SELECT epoch, holder, acquired_at FROM raised RETURNING epoch`,
            [input.holder],
          );
          const result: OutputOf<typeof store.leadershipAcquire> = { epoch: singleRow(rows).epoch };
          if (input.grantKey !== undefined) {
            await client.query("INSERT INTO parley.leader_keys (epoch, grant_key) VALUES ($1, $2)", [
              result.epoch,
              input.grantKey,
            ]);
          }
          return { result, memo: result };
        },
      },
    );
  },
} satisfies Partial<Handlers>;
