// The life cycle of a tool call on this replica. Repeated requests for one call share one record:
//
//   waiting ─→ claiming ─→ running ─→ settling ─→ answered
//      │           ├─→ answered            (settled already, or by another runner while we waited)
//      │           └─→ refused             (a previous instance of this replica died with it: the leader settles it as unknown)
//      └─→ settling: cancelled
//
// A response is sent only after the store has settled the call, except for small results of pure calls that the caller commits itself.
// It does not know the bus: its dependencies are passed in.
import { createHash, createHmac, randomBytes, randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import {
  callToken,
  WireError,
  type PayloadOf,
  type ToolCallRequest,
  type ToolClass,
  type toolCancel,
  type ToolResult,
} from "@parley/contracts";
import { abortable } from "@parley/kit";
import { LRUCache } from "lru-cache";
import type { CallDependencies } from "./call-dependencies.ts";
import { decideClaim, runnerName, stricterClass } from "../tool/claim-decision.ts";
import { cancelled, resultOf, interrupted, answerOf, type CallAnswer, type Outcome } from "./outcomes.ts";
import { runCall, stopCall, type RunningCall } from "./run-call.ts";
import { SettlementQueue } from "./settlement.ts";

/** Maximum number of cancellations that are stored for calls that have not arrived. */
const maxCancelled = 10_000;

export class Calls {
  readonly #deps: CallDependencies;
  readonly #running = new Map<string, RunningCall>();
  readonly #settling: SettlementQueue;
  /** Cancellations of calls that have not arrived. */
  readonly #cancelled: LRUCache<string, true>;
  /** Derives the secret of each claim: repeating a claim whose response was lost yields the same secret. */
  readonly #claimKey = randomBytes(32);
  #draining = false;

  constructor(deps: CallDependencies) {
    this.#deps = deps;
    const { steps, times, faultPoint } = deps;
    this.#settling = new SettlementQueue({ steps, settleMs: times.settleMs, faultPoint });
    this.#cancelled = new LRUCache({ max: maxCancelled, ttl: times.rememberMs });
  }

  get count(): number {
    return this.#running.size;
  }

  /** Resolves with the settled result. A repeated request for a running call joins it. */
  handle(request: ToolCallRequest): Promise<CallAnswer> {
    this.#deps.epochs.admit(request.epoch);
    const key = callToken(request.turnId, request.n);
    const known = this.#running.get(key);
    if (known !== undefined) return known.answer;
    if (this.#draining) throw new WireError("UNAVAILABLE", "this tool-runner is stopping");
    const { grant } = request;
    // A newer leader may take over meanwhile: the caller repeats an unavailable call.
    if (grant === undefined) throw new WireError("UNAVAILABLE", "the leader runs an older version and sent no grant");
    const call: RunningCall = {
      request: { ...request, grant },
      claim: () => createHmac("sha256", this.#claimKey).update(key).digest("base64url"),
      control: new AbortController(),
      stop: undefined,
      waiting: true,
      release: () => undefined,
      asks: false,
      sayAlive: () => this.#deps.alive(request.turnId, request.n, call.asks),
      answer: Promise.reject(new Error("not begun")),
    };
    call.answer.catch(() => undefined);
    this.#running.set(key, call);
    call.answer = this.#live(key, call).finally(() => this.#running.delete(key));
    return call.answer;
  }

  /** Stops a call; if it has not arrived yet, it is stopped on arrival. */
  cancel(event: PayloadOf<typeof toolCancel>): void {
    if (event.epoch < this.#deps.epochs.highest) return;
    this.#deps.epochs.observe(event.epoch);
    const key = callToken(event.turnId, event.n);
    const call = this.#running.get(key);
    if (call === undefined) this.#cancelled.set(key, true);
    else stopCall(call, "cancelled");
  }

  /** Rejects new calls, returns the waiting ones, lets the rest run for `graceMs`, then stops them. Resolves when all have ended. */
  async drain(graceMs: number): Promise<void> {
    this.#draining = true;
    const calls = [...this.#running.values()];
    for (const call of calls) if (call.waiting) stopCall(call, "drain");
    const all = Promise.allSettled(calls.map((call) => call.answer));
    await abortable(all, AbortSignal.timeout(graceMs)).catch(() => undefined);
    for (const call of this.#running.values()) stopCall(call, "drain");
    const last = setTimeout(() => this.#settling.end(), this.#deps.times.stopMs);
    await all;
    clearTimeout(last);
  }

  async #live(key: string, call: RunningCall): Promise<CallAnswer> {
    const { request } = call;
    const startedAt = performance.now();
    call.sayAlive();
    const heart = setInterval(call.sayAlive, this.#deps.times.aliveMs);
    try {
      if (this.#cancelled.delete(key)) stopCall(call, "cancelled");
      const answer = await this.#work(key, call, () => clearInterval(heart));
      this.#deps.onEnd(request, answer, performance.now() - startedAt);
      return answer;
    } finally {
      clearInterval(heart);
    }
  }

  /** `silence` stops our heartbeat: when another runner has the call, only its heartbeat may count. */
  async #work(key: string, call: RunningCall, silence: () => void): Promise<CallAnswer> {
    const left = this.#settling.kept(key);
    if (left !== undefined) return this.#settle(key, call, left);
    let release: () => void;
    try {
      release = await this.#deps.line.acquire(call.control.signal);
    } catch {
      if (call.stop !== "cancelled") throw new WireError("UNAVAILABLE", "this tool-runner is stopping");
      return this.#settle(key, call, cancelled());
    }
    let ended: Outcome | CallAnswer;
    try {
      call.waiting = false;
      call.release = release;
      ended = await this.#claimAndRun(call, () => {
        silence();
        release();
      });
    } finally {
      release();
    }
    return "result" in ended ? ended : this.#settle(key, call, ended);
  }

  /** Resolves with an outcome to settle, or with an answer that is already settled. */
  async #claimAndRun(call: RunningCall, stepBack: () => void): Promise<Outcome | CallAnswer> {
    const { request } = call;
    const { faultPoint, me, registry, times } = this.#deps;
    await registry.ready?.(request.tool, call.control.signal);
    const toolClass = this.#classOf(request);
    if (toolClass === "pure") return runCall(this.#deps, call);
    const deadline = performance.now() + request.timeoutMs;
    const waitUntilMs = performance.now() + times.patienceMs;
    for (;;) {
      faultPoint("tool.before_claim");
      const claim = await this.#claim(call);
      faultPoint("tool.after_claim");
      const next = decideClaim(claim, me, toolClass);
      if (next.act === "run") return runCall(this.#deps, call);
      if (next.act === "answer") return answerOf(claim.step);
      // The previous instance's claim secret is lost, so only the leader can settle the step.
      if (next.act === "interrupted") throw new WireError("CONFLICT", interrupted(request.tool));
      if (next.thenRun && performance.now() >= waitUntilMs) return runCall(this.#deps, call);
      if (call.stop === "drain") throw new WireError("UNAVAILABLE", "this tool-runner is stopping");
      if (performance.now() >= deadline) {
        throw new WireError("TIMEOUT", `another tool-runner (${claim.step.runner ?? "?"}) has not settled this call`);
      }
      if (!next.thenRun) stepBack();
      await delay(times.pollMs);
    }
  }

  #claim({ request, claim }: RunningCall) {
    return this.#deps.steps.claim({
      grant: request.grant,
      opId: randomUUID(),
      epoch: Math.max(request.epoch, this.#deps.epochs.highest),
      runner: runnerName(this.#deps.me),
      claimHash: createHash("sha256").update(claim()).digest("hex"),
    });
  }

  /** Settles the outcome in the store, or leaves it to the caller. Resolves with the result that counts. */
  async #settle(key: string, call: RunningCall, ended: Outcome): Promise<CallAnswer> {
    const { request } = call;
    const result = resultOf(request, ended);
    if (this.#leavesToCaller(call, ended, result)) return { state: ended.state, result, unsettled: true };
    return this.#settling.settle(key, call, ended);
  }

  #leavesToCaller({ request, stop }: RunningCall, { state, output }: Outcome, result: ToolResult): boolean {
    if (
      request.unsettledBytes === undefined ||
      stop !== undefined ||
      output.shownAttachments !== undefined ||
      output.storedAttachments !== undefined
    )
      return false;
    if (state !== "done" && state !== "failed") return false;
    if (this.#classOf(request) !== "pure") return false;
    return Buffer.byteLength(JSON.stringify(result)) <= request.unsettledBytes;
  }

  /** The stricter of the classes that the caller and the tool state. */
  #classOf(request: ToolCallRequest): ToolClass {
    return stricterClass(request.class, this.#deps.registry.find(request.tool)?.descriptor.class);
  }
}
