// Control requests that a run sends to its program, and their answers.

import type { ProgramAnswer } from "./input.ts";

export interface RequestLimits {
  /** Omitted: the program may take as long as it wants. */
  readonly timeoutMs?: number;
  /** Withdraws the request. */
  readonly signal?: AbortSignal;
}

export class ProgramRequests {
  readonly #send: (request: object) => void;
  readonly #open = new Map<string, (answer: Pick<ProgramAnswer, "failure" | "decision">) => void>();
  #count = 0;
  #closed = false;

  /** `send` writes a control request to the program. */
  constructor(send: (request: object) => void) {
    this.#send = send;
  }

  /** The program's answer. Rejects when the program reports an error, gives no answer in time or closes its input. */
  async ask(request: { subtype: string }, { timeoutMs, signal }: RequestLimits = {}): Promise<unknown> {
    if (this.#closed) throw new Error(closedText);
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const requestId = this.#nextId();
    const late = (): void => reject(new Error(`no answer within ${timeoutMs} ms`));
    const timer = timeoutMs === undefined ? undefined : setTimeout(late, timeoutMs);
    const withdraw = (): void => {
      this.#send({ type: "control_cancel_request", request_id: requestId });
      reject(new Error("the request was withdrawn"));
    };
    signal?.addEventListener("abort", withdraw);
    this.#open.set(requestId, ({ failure, decision }) => {
      if (failure === null) resolve(decision);
      else reject(new Error(failure));
    });
    this.#send({ type: "control_request", request_id: requestId, request });
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", withdraw);
      this.#open.delete(requestId);
    }
  }

  /** Sends a request whose answer nobody needs. */
  announce(request: { subtype: string }): void {
    this.#send({ type: "control_request", request_id: this.#nextId(), request });
  }

  /** Passes on an answer; false if it answers no request of this class. */
  answer({ requestId, ...answer }: ProgramAnswer): boolean {
    const settle = this.#open.get(requestId);
    settle?.(answer);
    return settle !== undefined;
  }

  #nextId(): string {
    this.#count += 1;
    return `program${this.#count}`;
  }

  /** The program can no longer answer. */
  close(): void {
    this.#closed = true;
    for (const settle of this.#open.values()) settle({ failure: closedText, decision: null });
  }
}

const closedText = "the program closed its input";
