// Asks the person of a call's turn, for a tool that runs here: a question in the store, looked at until it is answered. While it waits the
// call's time stands still and its place is free for others.
import { setTimeout as delay } from "node:timers/promises";
import type { Bus } from "@parley/bus";
import { callToken, newId, store, WireError } from "@parley/contracts";

/** What came of a question. */
export type Reply =
  | { kind: "said"; text: string }
  /** Nobody can be asked in this turn. */
  | { kind: "nobody"; reason: string }
  /** Nobody has answered in the time there is for the whole call. */
  | { kind: "silent" };

export interface Person {
  /** Rejects with the signal's reason; the question is over then. Questions of one call are asked one after the other. */
  ask(question: string, options: readonly string[], signal: AbortSignal): Promise<Reply>;
}

export interface PersonDeps {
  bus: Bus;
  epoch: () => number;
}

/** The call that asks, with its rights and the secret of its claim. */
export interface AskingCall {
  turnId: string;
  n: number;
  grant: string;
  claim: string;
}

export interface Asking {
  /** How long the questions of one call may wait, all of them together. */
  asksMs: number;
  /** Called when a question begins to wait; what it returns, when that is over. */
  waits: () => () => void;
}

/** Pause between two looks; the store's hint usually comes first. */
const lookMs = 1_000;
/** A runner that has not looked for so long is gone, and its question with it. */
const heldForMs = 5_000;

export function personOf(deps: PersonDeps, call: AskingCall, { asksMs, waits }: Asking): Person {
  let leftMs = asksMs;
  let last: Promise<unknown> = Promise.resolve();
  const askNow = async (question: string, options: readonly string[], signal: AbortSignal): Promise<Reply> => {
    signal.throwIfAborted();
    if (leftMs <= 0) return { kind: "silent" };
    const goOn = waits();
    const since = performance.now();
    try {
      return await raise(deps, call, { question, options, expiresInMs: Math.ceil(leftMs) }, signal);
    } finally {
      leftMs -= performance.now() - since;
      goOn();
    }
  };
  return {
    ask: (question, options, signal) => {
      const asked = last.then(() => askNow(question, options, signal));
      last = asked.catch(() => undefined);
      return asked;
    },
  };
}

interface Asked {
  question: string;
  options: readonly string[];
  expiresInMs: number;
}

async function raise(
  { bus, epoch }: PersonDeps,
  { turnId, n, grant, claim }: AskingCall,
  { question, options, expiresInMs }: Asked,
  signal: AbortSignal,
): Promise<Reply> {
  let answered = Promise.withResolvers<undefined>();
  const heard = bus.subscribe(store.questionAnswered, { call: callToken(turnId, n) }, () =>
    answered.resolve(undefined),
  );
  try {
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
    const look = (holdMs: number) =>
      bus.request(store.questionLook, { grant, questionId, heldForMs: holdMs }).catch((error: unknown) => {
        // Time is over when the question's own is; until then a store that is away changes nothing.
        if (!WireError.is(error, "UNAVAILABLE", "TIMEOUT")) throw error;
        return { state: "open" as const, answer: null };
      });
    const over = performance.now() + expiresInMs;
    while (!signal.aborted) {
      const { state, answer } = await look(heldForMs);
      if (state === "answered") return { kind: "said", text: answer ?? "" };
      if (state === "over" || performance.now() >= over) return { kind: "silent" };
      await Promise.race([answered.promise, delay(lookMs, undefined, { signal }).catch(() => undefined)]);
      answered = Promise.withResolvers();
    }
    await look(0);
    throw signal.reason;
  } finally {
    heard.close();
  }
}
