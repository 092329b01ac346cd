// Asks the principal of a call's turn on behalf of a tool: stores a question and polls it until it is answered. Meanwhile the
// call's deadline is paused and its concurrency slot is free for other calls.
import { setTimeout as delay } from "node:timers/promises";
import type { Bus } from "@parley/bus";
import { callToken, newId, store, WireError } from "@parley/contracts";
import type { PersonPrompt, Reply } from "../tool/requests.ts";

export interface PersonDeps {
  bus: Bus;
  epoch: () => number;
}

/** The asking call, with its grant and the secret of its claim. */
export interface AskingCall {
  turnId: string;
  n: number;
  grant: string;
  claim: string;
}

export interface PendingQuestion {
  /** Total time that all questions of one call may wait. */
  asksMs: number;
  /** Called when a question starts to wait; the returned function is called when the wait ends. */
  waits: () => () => void;
}

/** Interval between polls; the store's hint usually arrives earlier. */
const pollMs = 1_000;
/** After this long without a poll, the store considers the runner gone and closes the question. */
const heldForMs = 5_000;

export function createPersonPrompt(
  { bus, epoch }: PersonDeps,
  { turnId, n, grant, claim }: AskingCall,
  { asksMs, waits }: PendingQuestion,
): PersonPrompt {
  let leftMs = asksMs;
  let last: Promise<unknown> = Promise.resolve();

  const ask = async (question: string, options: readonly string[], signal: AbortSignal): Promise<Reply> => {
    signal.throwIfAborted();
    if (leftMs <= 0) return { kind: "silent" };
    const goOn = waits();
    const since = performance.now();
    let answered = Promise.withResolvers<undefined>();
    const call = callToken(turnId, n);
    const subscription = bus.subscribe(store.questionAnswered, { call }, () => answered.resolve(undefined));
    try {
      const expiresInMs = Math.ceil(leftMs);
      const raised = await bus.request(store.questionRaise, {
        opId: newId(),
        epoch: epoch(),
        grant,
        claim,
        question: question.slice(0, store.maxQuestionCharacters).toWellFormed(),
        options: options.map((option) => option.slice(0, 200).toWellFormed()),
        expiresInMs,
        heldForMs,
      });
      if (raised.status === "nobody") return { kind: "nobody", reason: raised.reason };
      const { questionId } = raised;
      const poll = (holdMs: number) =>
        bus.request(store.questionLook, { grant, questionId, heldForMs: holdMs }).catch((error: unknown) => {
          // Only the question's own expiry counts: an unavailable store changes nothing until then.
          if (!WireError.is(error, "UNAVAILABLE", "TIMEOUT")) throw error;
          return { state: "open" as const, answer: null };
        });
      const over = performance.now() + expiresInMs;
      while (!signal.aborted) {
        const { state, answer } = await poll(heldForMs);
        if (state === "answered") return { kind: "said", text: answer ?? "" };
        if (state === "over" || performance.now() >= over) return { kind: "silent" };
        await Promise.race([answered.promise, delay(pollMs, undefined, { signal }).catch(() => undefined)]);
        answered = Promise.withResolvers();
      }
      await poll(0);
      throw signal.reason;
    } finally {
      subscription.close();
      leftMs -= performance.now() - since;
      goOn();
    }
  };

  return {
    ask: (question, options, signal) => {
      const answer = last.then(() => ask(question, options, signal));
      last = answer.catch(() => undefined);
      return answer;
    },
  };
}
