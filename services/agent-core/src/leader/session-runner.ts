// Which sessions this leader works on. A wake-up drains a session: its turns run one after the other until no input is
// queued. A wake-up during a drain causes another check for input at the end, and notifies the running turn.
import { faultPoint } from "@parley/chassis";
import { sessionEvent, store, type controlCompact, type OutputOf } from "@parley/contracts";
import { FairSemaphore, Permit } from "@parley/kit";
import { failTurn } from "../turn/finish.ts";
import type { Active, WakeUp } from "./active-session.ts";
import { compactOnDemand, type CompactionRequest } from "./compact-on-request.ts";
import { claimOfStarted, refreshView } from "../session/refresh-view.ts";
import { TurnInterruptedError, runTurn, type TurnEnd } from "../turn/loop.ts";
import type { TurnPreparer } from "../turn/prepare.ts";
import { hasOutputHooks, redactedText } from "../hooks/matcher.ts";
import type { TurnDeps } from "../turn/dependencies.ts";
import { LeadershipLostError } from "../store-client/leader-store.ts";
import { Views } from "../session/view.ts";

/** How many stopped turns that this leader does not know yet are remembered; the oldest are forgotten. */
const maxStoppedEarly = 1_000;

/** A turn that was claimed this often, because its leaders crashed, is ended. */
const maxClaims = 5;

export class SessionRunner {
  readonly #deps: TurnDeps;
  readonly #setup: TurnPreparer;
  readonly #views: Views;
  readonly #active = new Map<string, Active>();
  readonly #slots: FairSemaphore;
  readonly #childSlots: FairSemaphore;
  /** Turns that were stopped before the response to their claim, or the hint with their start, arrived here. */
  readonly #stoppedEarly = new Set<string>();
  /** Sessions that are being compacted in the background. */
  readonly #shortening = new Set<string>();
  /** Compactions that people requested and that wait for the end of a turn. */
  readonly #requestedCompactions = new Map<string, CompactionRequest>();
  /** Replaces results of earlier leaders that a hook should have received and did not. */
  readonly #withhold: { withhold?: string };
  /** Whether a claim returns what the session has used before, which its limits need. */
  readonly #withEarlier: boolean;
  #handingOver = false;
  readonly #over = new AbortController();

  constructor(deps: TurnDeps, setup: TurnPreparer, maxViews: number) {
    this.#deps = deps;
    this.#setup = setup;
    this.#withhold = hasOutputHooks(deps.settings.hooks) ? { withhold: redactedText } : {};
    const { limits } = deps.settings;
    this.#withEarlier = limits.max_iterations_per_session + limits.max_usd_per_session > 0;
    this.#views = new Views(maxViews);
    this.#slots = new FairSemaphore(deps.settings.agent.max_concurrent_turns);
    this.#childSlots = new FairSemaphore(deps.settings.subagents.max_concurrent);
  }

  get activeCount(): number {
    return this.#active.size;
  }

  /** Whether the store may start turns for this leader; false during a hand-over. */
  get acceptsStarted(): boolean {
    return !this.#handingOver && !this.#withEarlier;
  }

  isActive(sessionId: string): boolean {
    return this.#active.has(sessionId);
  }

  /** Works until no input is queued in the session. Returns immediately when a drain is running, which is notified. */
  async drain(sessionId: string, { steers, started }: WakeUp = {}): Promise<void> {
    const current = this.#active.get(sessionId);
    if (current !== undefined) {
      current.again = true;
      current.started = started ?? current.started;
      if (steers !== undefined && steers === current.trust) current.input = true;
      return;
    }
    if (this.#handingOver) return;
    const { active, release } = this.#hold(sessionId, started);
    try {
      do {
        active.again = false;
        let more = true;
        while (more && !this.#handingOver) {
          more = await this.#nextTurn(sessionId, active);
          await this.#compactWanted(sessionId);
        }
      } while (active.again && !this.#handingOver);
    } catch (error) {
      this.#views.forget(sessionId);
      this.#deps.log.error({ err: error, sessionId }, "session failed: retried by the next sweep");
    } finally {
      release();
    }
  }

  /** Compacts a session on request of a person: now, or at the end of the running turn. */
  async compact(demand: CompactionRequest): Promise<OutputOf<typeof controlCompact>> {
    const { sessionId } = demand;
    if (this.#active.has(sessionId) || this.#handingOver) {
      this.#requestedCompactions.set(sessionId, demand);
      return { outcome: "busy_later" };
    }
    const { active, release } = this.#hold(sessionId);
    try {
      return await this.#compactNow(demand);
    } finally {
      release();
      if (active.again) void this.drain(sessionId, { started: active.started });
    }
  }

  /** Reserves the session until it is released. */
  #hold(sessionId: string, started?: store.StartedTurn): { active: Active; release: () => void } {
    const ended = Promise.withResolvers<void>();
    const active: Active = {
      again: false,
      turnId: undefined,
      trust: undefined,
      stop: new AbortController(),
      input: false,
      started,
      done: ended.promise,
    };
    this.#active.set(sessionId, active);
    const release = () => {
      this.#active.delete(sessionId);
      ended.resolve();
    };
    return { active, release };
  }

  /** Compacts long idle sessions while the provider still has them in its cache. Called periodically. */
  async compactIdle(now = Date.now()): Promise<void> {
    const idleMs = this.#deps.settings.compaction.idle_minutes * 60_000;
    if (idleMs === 0) return;
    for (const [sessionId, view] of this.#views.entries()) {
      const due = view.idleSince > 0 && now - view.idleSince >= idleMs;
      if (!due || this.#active.has(sessionId)) continue;
      // Once per idle period; the next turn starts a new one.
      await this.#shorten({ sessionId, instructions: undefined, cause: "idle" });
      view.idleSince = 0;
    }
  }

  /**
   * Runs concurrently with the session: the next claim returns the new record. The store refuses a record that was
   * based on an outdated one, so nothing is lost.
   */
  async #shorten(demand: CompactionRequest): Promise<void> {
    const { sessionId } = demand;
    if (this.#shortening.has(sessionId) || this.#handingOver) return;
    this.#shortening.add(sessionId);
    const { leaderStore, log } = this.#deps;
    const view = this.#views.of(sessionId);
    try {
      const seen = await leaderStore.request(store.sessionView, { sessionId, knownSeq: view.seq });
      if (seen.busy || seen.messages.length > 0) return;
      const copy = { ...view, messages: [...view.messages] };
      const toolbox = await this.#setup.toolboxFor(seen.session);
      await compactOnDemand(this.#deps, demand, seen, { view: copy, toolbox }, this.#over.signal);
    } catch (error) {
      if (!this.#over.signal.aborted)
        log.warn({ err: error, sessionId }, "background compaction failed: the session keeps its full view");
    } finally {
      this.#shortening.delete(sessionId);
    }
  }

  async #compactWanted(sessionId: string): Promise<void> {
    const demand = this.#requestedCompactions.get(sessionId);
    if (demand === undefined || this.#handingOver) return;
    this.#requestedCompactions.delete(sessionId);
    try {
      await this.#compactNow(demand);
    } catch (error) {
      if (error instanceof LeadershipLostError) throw error;
      this.#deps.log.error({ err: error, sessionId }, "requested compaction failed");
    }
  }

  async #compactNow(demand: CompactionRequest): Promise<OutputOf<typeof controlCompact>> {
    const { sessionId } = demand;
    const { leaderStore } = this.#deps;
    const view = this.#views.of(sessionId);
    const query = { sessionId, knownSeq: view.seq };
    const seen = await leaderStore.request(store.sessionView, query);
    if (seen.busy) {
      // The turn is parked; compact after its end.
      this.#requestedCompactions.set(sessionId, demand);
      return { outcome: "busy_later" };
    }
    try {
      await refreshView(this.#deps.leaderStore, sessionId, view, seen);
      const toolbox = await this.#setup.toolboxFor(seen.session);
      return await compactOnDemand(this.#deps, demand, seen, { view, toolbox }, new AbortController().signal);
    } catch (error) {
      this.#views.forget(sessionId);
      throw error;
    }
  }

  /** Stops the session's running turn. False when no turn is running, or a different one than `turnId`. */
  cancel(sessionId: string, turnId: string | undefined): boolean {
    const active = this.#active.get(sessionId);
    if (active?.turnId === undefined || (turnId !== undefined && turnId !== active.turnId)) {
      if (turnId !== undefined) this.#stopEarly(turnId);
      return false;
    }
    active.stop.abort(new TurnInterruptedError("stopped"));
    return true;
  }

  #stopEarly(turnId: string): void {
    const [oldest] = this.#stoppedEarly.add(turnId);
    if (this.#stoppedEarly.size > maxStoppedEarly && oldest !== undefined) this.#stoppedEarly.delete(oldest);
  }

  /** Takes no new turns; resolves when the running ones have reached a commit. */
  async handOver(): Promise<void> {
    this.#handingOver = true;
    this.#over.abort();
    await Promise.all([...this.#active.values()].map((active) => active.done));
  }

  /** True when more work is queued after this turn. */
  async #nextTurn(sessionId: string, active: Active): Promise<boolean> {
    const { bus, leaderStore, log, settings } = this.#deps;
    const view = this.#views.of(sessionId);
    faultPoint("agent.before_claim");
    const started = claimOfStarted(active.started, leaderStore.epoch, view);
    active.started = undefined;
    const claim =
      started ??
      (await leaderStore.request(store.turnClaim, {
        sessionId,
        knownSeq: view.seq,
        maxClaims,
        order: settings.queue.order,
        ageingSeconds: settings.queue.ageing_seconds,
        ...(this.#withEarlier ? { withEarlier: true } : {}),
        ...this.#withhold,
      }));
    faultPoint("agent.after_claim");
    if (claim.status === "empty") return false;
    if (claim.status === "dead") {
      this.#deps.model.metrics.turnEnded({ turnId: "", inboxIds: [] }, "dead");
      for (const event of claim.finished) bus.publish(sessionEvent, event, { session: sessionId });
      this.#views.forget(sessionId);
      return true;
    }
    // The turn can be cancelled from here on.
    active.turnId = claim.turn.turnId;
    // Input never joins an exclusive turn, so hints about input must not interrupt its tool calls.
    active.trust = claim.turn.exclusive === true ? undefined : claim.turn.trust;
    active.stop = new AbortController();
    if (this.#stoppedEarly.delete(claim.turn.turnId)) active.stop.abort(new TurnInterruptedError("stopped"));
    active.input = false;
    const signals = {
      stop: active.stop.signal,
      handingOver: () => this.#handingOver,
      inputCame: () => {
        const came = active.input;
        active.input = false;
        return came;
      },
    };
    try {
      await refreshView(this.#deps.leaderStore, sessionId, view, claim);
      for (const message of claim.messages) {
        if (message.turnId === claim.turn.turnId && message.role === "user") {
          bus.publish(sessionEvent, { type: "message", seq: message.seq, message }, { session: sessionId });
        }
      }
      const start = await this.#setup.prepare(claim.turn, claim.session, view, claim.steerable);
      const slots = claim.turn.parent === null ? this.#slots : this.#childSlots;
      // A turn that is stopped while it waits for a slot still runs, so that it ends as stopped.
      const slot = new Permit(slots, claim.turn.inboxIds[0] ?? "");
      await slot.acquire(signals.stop).catch(() => undefined);
      const end: TurnEnd = await runTurn(this.#deps, start, { ...signals, slot }).finally(() => slot.release());
      view.idleSince = Date.now();
      if (end === "finished" && view.nearlyDue)
        void this.#shorten({ sessionId, instructions: undefined, cause: "ahead" });
      return end === "more_queued" || end === "resumable";
    } catch (error) {
      if (error instanceof LeadershipLostError) throw error;
      log.error({ err: error, turnId: claim.turn.turnId }, "turn failed");
      this.#views.forget(sessionId);
      await failTurn(this.#deps, claim.turn);
      this.#deps.model.metrics.turnEnded(claim.turn, "failed");
      return true;
    } finally {
      active.turnId = undefined;
    }
  }
}
