// Claims a session's next work: its running turn, after a leader change or a lost claim reply, otherwise the first queued row, which
// becomes a turn. The leader works on a session in one place only, so a running turn can be resumed.
import { WireError, type DurableEvent } from "@parley/contracts";
import { runOperation } from "../../db/operation.ts";
import { deadLetter } from "./dead-letter.ts";
import { resume } from "./resume.ts";
import { started, startStatement, type StartedRow } from "./start.ts";
import type { Claim } from "./claim-result.ts";
import { publishReady, type ReadyHint } from "./notify.ts";
import { stopOrphans } from "./turns.ts";
import type { Handlers } from "../handler.ts";

interface RunningRow {
  id: string;
  attempts: number;
  asleep: boolean;
}

const runningTurn = {
  name: "claim-running",
  text: `SELECT id, attempts, parked AND coalesce(wake_at > now(), true) AS asleep
         FROM parley.turns WHERE session_id = $1 AND state = 'running'`,
};

export const claimHandlers = {
  async turnClaim({ database, bus }, input) {
    // The lock on the session orders claims, commits and inbox writes; later statements see everything committed before.
    const wakes: ReadyHint[] = [];
    const claimed = runOperation<Claim>(
      database,
      { ...input, lockSession: input.sessionId },
      {
        name: "claim",
        first: startStatement(input),
        async run(client, session, rows) {
          if (session === undefined) throw new WireError("NOT_FOUND", `no session ${input.sessionId}`);
          const claim = await started(client, input, session, rows as StartedRow[]);
          if (claim !== undefined) return claim;
          const running = (await client.query<RunningRow>({ ...runningTurn, values: [input.sessionId] })).rows[0];
          if (running === undefined || running.asleep) return { result: { status: "empty" } };
          if (running.attempts >= input.maxClaims) return deadLetter(client, input, running.id, wakes);
          await client.query(
            `UPDATE parley.turns SET epoch = $2, attempts = attempts + 1, claimed_at = clock_timestamp(), parked = false, wake_at = NULL
             WHERE id = $1`,
            [running.id, input.epoch],
          );
          return resume(client, input, running.id);
        },
        async replay(client, memo) {
          const { status, turnId, finished } = memo as {
            status: Claim["status"];
            turnId?: string;
            finished?: DurableEvent[];
          };
          if (status === "dead" || turnId === undefined) return { status: "dead", finished: finished ?? [] };
          return {
            ...(await resume(client, input, turnId)).result,
            status: status === "started" ? "started" : "resumed",
          } as Claim;
        },
      },
    );
    const result = await claimed.finally(() => publishReady(bus, wakes));
    if (result.status === "dead") {
      const ended = result.finished.flatMap((event) => (event.type === "turn.finished" ? [event.turnId] : []));
      await stopOrphans(database, bus, ended);
    }
    return result;
  },
} satisfies Partial<Handlers>;
