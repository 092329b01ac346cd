// Answers that wait to be spoken: made into sound one after the other in each session, sent by the commit that says they are made. What
// cannot be made is tried again a few times, then left: the text is there.
import type { Bus } from "@parley/bus";
import type { Logger } from "@parley/chassis";
import { newId, store, WireError, type InputOf, type Spoken } from "@parley/contracts";
import { soundOf } from "../speech/sound.ts";
import { SynthesisError, type Synthesizer } from "../speech/synthesizer.ts";

/** Of one look. */
const batch = 20;
const firstPauseMs = 1_000;
const longestPauseMs = 60_000;

export interface SpokenDeps {
  bus: Bus;
  log: Logger;
  epoch: number;
  /** Null: nobody speaks (any more); what waits is left. */
  synthesizer: Synthesizer | null;
  storeTimeoutMs: number;
  signal: AbortSignal;
}

type Outcome = InputOf<typeof store.spokenSettle>["outcome"];

/** Makes what waits. Rejects when the store is away, with STALE_EPOCH, or when the leader ends. */
export async function speakPending(deps: SpokenDeps): Promise<void> {
  const { bus, signal } = deps;
  for (;;) {
    const { spoken } = await bus.request(store.spokenPending, { limit: batch }, { signal });
    if (spoken.length === 0) return;
    // All have ended before anything is looked for again: nothing is made twice at the same time.
    const sessions = [...Map.groupBy(spoken, ({ sessionId }) => sessionId).values()];
    const ends = await Promise.allSettled(sessions.map((each) => inOrder(deps, each)));
    for (const end of ends) if (end.status === "rejected") throw end.reason;
  }
}

async function inOrder(deps: SpokenDeps, spoken: readonly Spoken[]): Promise<void> {
  const { bus, epoch, storeTimeoutMs, signal } = deps;
  for (const each of spoken) {
    const outcome = await outcomeOf(deps, each);
    const order = { opId: newId(), epoch, spokenId: each.spokenId, outcome };
    await bus.request(store.spokenSettle, order, { timeoutMs: storeTimeoutMs, signal });
  }
}

async function outcomeOf({ bus, log, synthesizer, signal }: SpokenDeps, spoken: Spoken): Promise<Outcome> {
  const { turnId, text, attempts } = spoken;
  if (synthesizer === null) {
    log.warn({ turnId }, "an answer is not spoken: no [voice.speech] is configured");
    return { state: "dropped" };
  }
  try {
    const attachment = await soundOf(bus, synthesizer, { text, signal });
    return attachment === null ? { state: "dropped" } : { state: "made", attachment };
  } catch (error) {
    if (!(error instanceof SynthesisError) && !WireError.is(error, "TOO_LARGE", "INVALID_INPUT")) throw error;
    const again = error instanceof SynthesisError && error.again && attempts + 1 < synthesizer.settings.tries;
    log.warn({ err: error, turnId, attempts: attempts + 1, again }, "an answer could not be spoken");
    if (!again) return { state: "dropped" };
    return { state: "retry", afterMs: Math.min(longestPauseMs, firstPauseMs * 4 ** attempts) };
  }
}
