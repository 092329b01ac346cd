// Synthesizes pending spoken answers, in order within each session; the commit that settles an answer also sends it. Failures are
// retried a few times and then dropped, since the text of the answer is available.
import type { Bus } from "@parley/bus";
import type { Logger } from "@parley/chassis";
import { newId, store, WireError, type InputOf, type SpokenReply } from "@parley/contracts";
import { audioFormat } from "./audio-format.ts";
import { SynthesisError, type Synthesizer } from "./synthesizer.ts";

/** Maximum number of answers per request. */
const batch = 20;
const firstPauseMs = 1_000;
const longestPauseMs = 60_000;

export interface SpokenDeps {
  bus: Bus;
  log: Logger;
  epoch: number;
  /** Null if no speech service is configured; pending answers are then dropped. */
  synthesizer: Synthesizer | null;
  storeTimeoutMs: number;
  signal: AbortSignal;
}

type Outcome = InputOf<typeof store.spokenSettle>["outcome"];

/** Processes all pending answers. Rejects if the store is unavailable, with STALE_EPOCH, or when the leader ends. */
export async function speakPending(deps: SpokenDeps): Promise<void> {
  const { bus, signal } = deps;
  for (;;) {
    const { spoken: replies } = await bus.request(store.spokenPending, { limit: batch }, { signal });
    if (replies.length === 0) return;
    // All must have ended before the next request, so that no answer is synthesized twice concurrently.
    const sessions = [...Map.groupBy(replies, ({ sessionId }) => sessionId).values()];
    const ends = await Promise.allSettled(sessions.map((each) => inOrder(deps, each)));
    for (const end of ends) if (end.status === "rejected") throw end.reason;
  }
}

async function inOrder(deps: SpokenDeps, replies: readonly SpokenReply[]): Promise<void> {
  const { bus, epoch, storeTimeoutMs, signal } = deps;
  for (const each of replies) {
    const outcome = await outcomeOf(deps, each);
    const order = { opId: newId(), epoch, spokenId: each.spokenId, outcome };
    await bus.request(store.spokenSettle, order, { timeoutMs: storeTimeoutMs, signal });
  }
}

async function outcomeOf({ bus, log, synthesizer, signal }: SpokenDeps, reply: SpokenReply): Promise<Outcome> {
  const { turnId, text, attempts } = reply;
  if (synthesizer === null) {
    log.warn({ turnId }, "answer not spoken: [voice.speech] is not configured");
    return { state: "dropped" };
  }
  try {
    const attachment = await audioFormat(bus, synthesizer, { text, signal });
    return attachment === null ? { state: "dropped" } : { state: "made", attachment };
  } catch (error) {
    if (!(error instanceof SynthesisError) && !WireError.is(error, "TOO_LARGE", "INVALID_INPUT")) throw error;
    const again = error instanceof SynthesisError && error.again && attempts + 1 < synthesizer.settings.tries;
    log.warn({ err: error, turnId, attempts: attempts + 1, willRetry: again }, "answer not spoken: synthesis failed");
    if (!again) return { state: "dropped" };
    return { state: "retry", afterMs: Math.min(longestPauseMs, firstPauseMs * 4 ** attempts) };
  }
}
