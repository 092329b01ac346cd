// A call whose result is looked up once, such as that of the account's own identity.
import type { Answer } from "./json-api.ts";

export class RememberedCall<Result> {
  readonly #call: (signal: AbortSignal) => Promise<Answer<Result>>;
  #known: Answer<Result> | undefined;

  constructor(call: (signal: AbortSignal) => Promise<Answer<Result>>) {
    this.#call = call;
  }

  /** The remembered result, or else the answer of the platform; a failure is not remembered. */
  async answer(signal: AbortSignal): Promise<Answer<Result>> {
    if (this.#known !== undefined) return this.#known;
    const answer = await this.#call(signal);
    if (answer.kind === "ok") this.#known = answer;
    return answer;
  }

  forget(): void {
    this.#known = undefined;
  }
}
