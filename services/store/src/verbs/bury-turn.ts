// The end of a turn that took its leader down too often.
import type { PoolClient } from "../database.ts";
import { addressOf } from "../rows.ts";
import { only, type Done } from "../transaction.ts";
import type { Claim, ClaimInput } from "./claimed-turn.ts";
import { endTurn } from "./end-turn.ts";
import type { Wake } from "./report.ts";

/** How long a notice about a turn may wait to be sent. */
const noticeExpiryMs = 24 * 60 * 60 * 1000;

/** A turn that took its leader down too often ends here, and its user is told. */
export async function bury(client: PoolClient, input: ClaimInput, turnId: string, wakes: Wake[]): Promise<Done<Claim>> {
  const text = `I could not finish this: it was interrupted ${input.maxClaims} times. I have put it aside; please ask again, perhaps in another way.`;
  const replyTo = addressOf(
    only(
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
    // No leader has looked at the results of its open calls.
    tainted: true,
    finish: { state: "dead", exitReason: "error", text },
    wakes,
  });
  return { result: { status: "dead", finished }, memo: { status: "dead", finished } };
}
