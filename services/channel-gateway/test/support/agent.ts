// A minimal agent-core for tests: it claims turns, answers by a script, commits and publishes events like the real one.
import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { Bus, Served } from "@parley/bus";
import {
  controlCancel,
  controlModels,
  inboxReady,
  noUsage,
  sessionEvent,
  store,
  textOf,
  WireError,
  type Attachment,
  type Part,
  type ExitReason,
  type LiveEvent,
  type SessionEvent,
} from "@parley/contracts";

/** A turn that runs for longer after its test is never ended by it. */
const abandonedMs = 10_000;

interface Answer {
  /** Published as deltas, at once or as they come. */
  deltas: string[] | AsyncIterable<string>;
  /** The committed text; default: all deltas joined. */
  text?: string;
  exitReason?: ExitReason;
  /** Sent after the text. */
  attachments?: Attachment[];
  /** The turn sends nothing. */
  unsent?: boolean;
}

interface ScriptedTurn {
  turnId: string;
  sessionId: string;
  /** Publishes an event of the turn before its answer. */
  publish: (event: SessionEvent) => void;
}

export type Script = (said: string, turn: ScriptedTurn) => Promise<Answer> | Answer;

export class TestAgent {
  script: Script = (said) => ({ deltas: ["You said: ", said] });
  /** Selects events that are not published. */
  lose: (event: SessionEvent) => boolean = () => false;
  readonly cancelled: string[] = [];
  readonly heard: string[] = [];
  /** The same messages with all their parts. */
  readonly heardParts: Part[][] = [];
  /** Messages of turns that have ended. */
  readonly #answered: Part[][] = [];
  #waiting: (() => void)[] = [];
  readonly #heardOn = new Map<string, string[]>();
  readonly #bus: Bus;
  readonly epoch: number;
  readonly #busy = new Map<string, Promise<void>>();
  #hints: Served | undefined;
  #isClosed = false;

  private constructor(bus: Bus, epoch: number) {
    this.#bus = bus;
    this.epoch = epoch;
  }

  static async start(bus: Bus): Promise<TestAgent> {
    const { epoch } = await bus.request(store.leadershipAcquire, { opId: randomUUID(), holder: "test-agent" });
    const agent = new TestAgent(bus, epoch);
    agent.#hints = bus.subscribe(inboxReady, {}, ({ sessionId, afterMs }) => {
      // Like the leader: a coalescing row is claimed when its window ends.
      if (afterMs === undefined) agent.#work(sessionId);
      else setTimeout(() => agent.#work(sessionId), afterMs + 20).unref();
    });
    bus.serve(controlModels, async () => ({ provider: "test", model: "test-1", note: null, tools: ["message"] }));
    bus.serve(controlCancel, async ({ sessionId }) => {
      agent.cancelled.push(sessionId);
      return { cancelled: true };
    });
    // Hints are not repeated and there is no sweep here, so the subscription must exist before the first hint.
    await bus.flush();
    return agent;
  }

  /** The texts received through one account of a channel. */
  heardOn(account: string): string[] {
    return this.#heardOn.get(account) ?? [];
  }

  /** Resolves when a turn has read this text through one account. */
  async hears(account: string, text: string): Promise<void> {
    while (!this.heardOn(account).includes(text)) await new Promise<void>((look) => this.#waiting.push(look));
  }

  /** Resolves when a turn with a matching message has ended. */
  async answered(fits: (parts: readonly Part[]) => boolean): Promise<void> {
    while (!this.#answered.some(fits)) await new Promise<void>((look) => this.#waiting.push(look));
  }

  /** Resolves when a turn with this message has begun. */
  async began(said: string): Promise<void> {
    while (!this.heard.includes(said)) await new Promise<void>((look) => this.#waiting.push(look));
  }

  /** Resolves when all known turns have ended; very recent messages may not be known yet. */
  async idle(): Promise<void> {
    await Promise.all(this.#busy.values());
  }

  /** Starts no further turns and waits for the running ones, except those that a failed test has left without an end. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#hints?.close();
    await Promise.race([this.idle(), delay(abandonedMs, undefined, { ref: false })]);
  }

  /** A refusal by the store ends that turn; any other error is an unhandled rejection, which fails the test. */
  #work(sessionId: string): void {
    const before = this.#busy.get(sessionId) ?? Promise.resolve();
    const work = before
      .then(() => (this.#isClosed ? undefined : this.#turn(sessionId)))
      .catch((error: unknown) => {
        if (!WireError.is(error) || WireError.is(error, "UNAVAILABLE", "TIMEOUT")) throw error;
      });
    this.#busy.set(sessionId, work);
  }

  async #turn(sessionId: string): Promise<void> {
    const claim = await this.#bus.request(store.turnClaim, {
      opId: randomUUID(),
      epoch: this.epoch,
      sessionId,
      knownSeq: 0,
      maxClaims: 5,
    });
    if (claim.status !== "started" && claim.status !== "resumed") return;
    const { turnId, inboxIds, replyTo, nextStep, attempt } = claim.turn;
    // Steering messages share one turn.
    const questions = claim.messages.filter((message) => message.turnId === turnId && message.role === "user");
    const texts = questions.map((message) => textOf(message.parts));
    const said = texts.join("\n");
    this.heard.push(...texts);
    this.heardParts.push(...questions.map((message) => message.parts));
    if (replyTo !== null) this.#heardOn.set(replyTo.account, [...this.heardOn(replyTo.account), ...texts]);
    this.#changed();
    this.#say(sessionId, { type: "turn.started", turnId, inboxIds, attempt });
    for (const message of questions) this.#say(sessionId, { type: "message", seq: message.seq, message });
    const publish = (event: SessionEvent) => this.#say(sessionId, event);
    const answer = await this.script(said, { turnId, sessionId, publish });
    const streamed: string[] = [];
    for await (const text of answer.deltas) {
      streamed.push(text);
      this.#say(sessionId, { type: "text.delta", turnId, step: nextStep, attempt, text } satisfies LiveEvent);
    }
    const text = answer.text ?? streamed.join("");
    const exitReason = answer.exitReason ?? "end_turn";
    const state = exitReason === "error" ? "failed" : "done";
    const usage = { ...noUsage, inputTokens: 3, outputTokens: 2 };
    const parts = [{ type: "text" as const, text }];
    const committed = await this.#bus.request(store.stepCommit, {
      opId: randomUUID(),
      epoch: this.epoch,
      turnId,
      n: nextStep,
      model: "test-1",
      stopReason: "end_turn",
      usage,
      parts,
      results: 0,
      toolCalls: [],
      outgoing:
        replyTo === null || answer.unsent === true
          ? []
          : [{ address: replyTo, text, attachments: answer.attachments ?? [], expiresInMs: 60_000 }],
      finish: { state, exitReason, text },
    });
    const message = {
      seq: committed.messageSeq,
      role: "assistant" as const,
      turnId,
      parts,
      model: "test-1",
      createdAt: committed.at,
    };
    this.#say(sessionId, { type: "message", seq: committed.messageSeq, message });
    this.#say(sessionId, {
      type: "turn.finished",
      seq: committed.finishSeq ?? 0,
      turnId,
      state,
      exitReason,
      text,
      usage,
      cost: committed.cost,
    });
    this.#answered.push(...questions.map((message) => message.parts));
    this.#changed();
    // Input that waited for the files of this one has no further hint.
    if (committed.queued) this.#work(sessionId);
  }

  #changed(): void {
    for (const look of this.#waiting.splice(0)) look();
  }

  #say(sessionId: string, event: SessionEvent): void {
    if (!this.lose(event)) this.#bus.publish(sessionEvent, event, { session: sessionId });
  }
}
