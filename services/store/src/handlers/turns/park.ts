// Parks a turn that waits for a person or a sub-agent. The writer of an awaited event locks the step (or its question) and then checks
// whether the turn is parked; parking holds the same locks, so that neither misses the other.
import type { OutputOf, store } from "@parley/contracts";
import { runOperation } from "../../db/operation.ts";
import { lockTurn } from "./end.ts";
import type { Handlers } from "../handler.ts";

type Output = OutputOf<typeof store.turnPark>;

export const parkHandlers = {
  turnPark({ database }, input) {
    return runOperation<Output>(database, input, {
      name: "park",
      async run(client) {
        // Lock order: the turn before its steps.
        await lockTurn(client, input.turnId, input.epoch);
        const steps = await client.query<{ n: number; state: string; result: string | null }>(
          "SELECT n, state, result FROM parley.steps WHERE turn_id = $1 AND n = ANY($2::int[]) ORDER BY n FOR UPDATE",
          [input.turnId, input.waitingFor],
        );
        const questions = await client.query<{ pending: boolean }>(
          `SELECT state = 'pending' AND expires_at > now() AS pending FROM (
             SELECT * FROM parley.approvals WHERE turn_id = $1 AND n = ANY($2::int[]) FOR UPDATE
           ) AS a
           WHERE requested_at = (SELECT max(requested_at) FROM parley.approvals b WHERE b.turn_id = a.turn_id AND b.n = a.n)`,
          // A started call has been authorized, so only calls that have not started wait for questions.
          [input.turnId, steps.rows.filter((step) => step.state === "intended").map((step) => step.n)],
        );
        const happened =
          steps.rows.some((step) => step.result !== null) || questions.rows.some((each) => !each.pending);
        if (happened) {
          await client.query("UPDATE parley.turns SET attempts = 1 WHERE id = $1", [input.turnId]);
          return { result: { parked: false }, memo: { parked: false } };
        }
        const { rowCount } = await client.query(
          // Parking is progress and resets the counter: only consecutive claims without progress count.
          `UPDATE parley.turns SET parked = true, wake_at = $3, attempts = 1
           WHERE id = $1 AND state = 'running' AND epoch = $2 AND NOT cancel_requested`,
          [input.turnId, input.epoch, input.wakeAt],
        );
        return { result: { parked: rowCount === 1 }, memo: { parked: rowCount === 1 } };
      },
    });
  },
} satisfies Partial<Handlers>;
