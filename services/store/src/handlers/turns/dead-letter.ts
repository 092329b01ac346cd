// Ends a turn that was claimed too often without progress (dead letter).
import type { PoolClient } from "../../db/database.ts";
import { addressOf } from "../../db/mappers.ts";
import { singleRow, type Outcome } from "../../db/operation.ts";
import type { Claim, ClaimInput } from "./claim-result.ts";
import { endTurn } from "./end.ts";
import type { ReadyHint } from "./notify.ts";

/** How long the notice may wait for delivery. */
const noticeExpiryMs = 24 * 60 * 60 * 1000;

/** Ends a turn after too many claims and sends its user a notice. */
export async function deadLetter(
  client: PoolClient,
  input: ClaimInput,
  turnId: string,
  wakes: ReadyHint[],
): Promise<Outcome<Claim>> {
  const text = `I could not finish this: it was interrupted ${input.maxClaims} times. I have stopped trying; please ask again, perhaps in a different way.`;
  const replyTo = addressOf(
    singleRow(
      (await client.query<{ reply_to: string | null }>("SELECT reply_to FROM parley.turns WHERE id = $1", [turnId]))
        .rows,
    ).reply_to,
  );
  const finished = await endTurn(client, {
    turnId,
    epoch: null,
    parts: [],
    model: null,
    withhold: input.withhold === undefined ? undefined : { steps: null, text: input.withhold },
    unsettled: "Interrupted; the outcome is unknown.",
    outgoing: replyTo === null ? [] : [{ address: replyTo, text, expiresInMs: noticeExpiryMs }],
    // No leader has checked the results of its open calls for taint.
    tainted: true,
    finish: { state: "dead", exitReason: "error", text },
    wakes,
  });
  return { result: { status: "dead", finished }, memo: { status: "dead", finished } };
}
