// Which sessions are being worked on in this leader. A wake-up drains a session: its turns run one after the other until
// nothing waits. A wake-up for a session that is being drained makes it look once more before it stops, and tells a running turn
// that something has come in.
import { faultPoint } from "@parley/chassis";
import { newId, sessionEvent, store, WireError, type controlCompact, type OutputOf } from "@parley/contracts";
import { giveUp } from "./give-up.ts";
import { compactOnDemand, type Demand } from "./on-demand.ts";
import { refreshView } from "./refresh-view.ts";
import { Interruption, runTurn, type TurnEnd } from "./run-turn.ts";
import type { SessionSetup } from "./setup.ts";
import { Slot, Slots } from "./slots.ts";
import { hasOutputHooks, withheldText } from "../hooks/matches.ts";
import type { TurnDeps } from "./turn-deps.ts";
import { Views } from "./view.ts";

interface Active {
  /** Woken again while working: something may have come in since the last look. */
  again: boolean;
  turnId: string | undefined;
  /** Of the running turn: only equal trust joins it. */
  trust: string | undefined;
  stop: AbortController;
  /** Something has come in since the running turn has asked. */
  input: boolean;
  done: Promise<void>;
}

/** Claims after which a turn that keeps taking its leader down is ended. */
const maxClaims = 5;

export class Sessions {
  readonly #deps: TurnDeps;
  readonly #setup: SessionSetup;
  readonly #views: Views;
  readonly #active = new Map<string, Active>();
  readonly #slots: Slots;
  readonly #childSlots: Slots;
  /** Sessions that are made shorter while nobody waits. */
  readonly #shortening = new Set<string>();
  /** Compactions that people want and that wait for the end of a turn. */
  readonly #wanted = new Map<string, Demand>();
  #handingOver = false;
  readonly #over = new AbortController();
  readonly #failed: (reason: string) => void;

  /** `failed` hears of what cannot be mended within this process; it must end it. */
  constructor(deps: TurnDeps, setup: SessionSetup, maxViews: number, failed: (reason: string) => void) {
    this.#deps = deps;
    this.#setup = setup;
    this.#views = new Views(maxViews);
    this.#failed = failed;
    this.#slots = new Slots(deps.settings.agent.max_concurrent_turns);
    this.#childSlots = new Slots(deps.settings.subagents.max_concurrent);
  }

  get activeCount(): number {
    return this.#active.size;
  }

  isActive(sessionId: string): boolean {
    return this.#active.has(sessionId);
  }

  /**
   * Works until nothing waits in the session. Returns at once when that is being done already; `steers` is then the trust of
   * input that may join the running turn.
   */
  async drain(sessionId: string, steers?: string): Promise<void> {
    const current = this.#active.get(sessionId);
    if (current !== undefined) {
      current.again = true;
      if (steers !== undefined && steers === current.trust) current.input = true;
      return;
    }
    if (this.#handingOver) return;
    const { active, release } = this.#hold(sessionId);
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
      if (WireError.is(error, "STALE_EPOCH")) this.#failed("another agent-core has taken over");
      else
        this.#deps.log.error(
          { err: error, session: sessionId },
          "session could not be worked on; the next sweep tries again",
        );
    } finally {
      release();
    }
  }

  /** Makes a conversation shorter because a person wants it: now, or at the end of the turn that runs. */
  async compact(demand: Demand): Promise<OutputOf<typeof controlCompact>> {
    const { sessionId } = demand;
    if (this.#active.has(sessionId) || this.#handingOver) {
      this.#wanted.set(sessionId, demand);
      return { outcome: "busy_later" };
    }
    const { active, release } = this.#hold(sessionId);
    try {
      return await this.#compactNow(demand);
    } finally {
      release();
      if (active.again) void this.drain(sessionId);
    }
  }

  /** From here on nobody else works on the session, until it is released. */
  #hold(sessionId: string): { active: Active; release: () => void } {
    const ended = Promise.withResolvers<void>();
    const active: Active = {
      again: false,
      turnId: undefined,
      trust: undefined,
      stop: new AbortController(),
      input: false,
      done: ended.promise,
    };
    this.#active.set(sessionId, active);
    const release = () => {
      this.#active.delete(sessionId);
      ended.resolve();
    };
    return { active, release };
  }

  /** Makes long conversations shorter that have been idle while the provider still has them in its cache. To be called from time to time. */
  async compactIdle(now = Date.now()): Promise<void> {
    const idleMs = this.#deps.settings.compaction.idle_minutes * 60_000;
    if (idleMs === 0) return;
    for (const [sessionId, view] of this.#views.entries()) {
      const due = view.idleSince > 0 && now - view.idleSince >= idleMs;
      if (!due || this.#active.has(sessionId)) continue;
      // Once: the next turn begins a new time of rest.
      await this.#shorten({ sessionId, instructions: undefined, cause: "idle" });
      view.idleSince = 0;
    }
  }

  /**
   * Beside whatever the session does: the record is swapped in by the next claim. One that was made of an older record is
   * refused by the store, and nothing is lost.
   */
  async #shorten(demand: Demand): Promise<void> {
    const { sessionId } = demand;
    if (this.#shortening.has(sessionId) || this.#handingOver) return;
    this.#shortening.add(sessionId);
    const { bus, epoch, log, storeTimeoutMs } = this.#deps;
    const view = this.#views.of(sessionId);
    try {
      const asked = { epoch, sessionId, knownSeq: view.seq };
      const seen = await bus.request(store.sessionView, asked, { timeoutMs: storeTimeoutMs });
      if (seen.busy || seen.messages.length > 0) return;
      const copy = { ...view, messages: [...view.messages] };
      const toolbox = await this.#setup.toolboxFor(seen.session);
      await compactOnDemand(this.#deps, demand, seen, { view: copy, toolbox }, this.#over.signal);
    } catch (error) {
      if (WireError.is(error, "STALE_EPOCH")) this.#failed("another agent-core has taken over");
      else if (!this.#over.signal.aborted)
        log.warn({ err: error, session: sessionId }, "a conversation could not be made shorter ahead of time");
    } finally {
      this.#shortening.delete(sessionId);
    }
  }

  async #compactWanted(sessionId: string): Promise<void> {
    const demand = this.#wanted.get(sessionId);
    if (demand === undefined || this.#handingOver) return;
    this.#wanted.delete(sessionId);
    try {
      await this.#compactNow(demand);
    } catch (error) {
      if (WireError.is(error, "STALE_EPOCH")) throw error;
      this.#deps.log.error({ err: error, session: sessionId }, "the compaction that was asked for has failed");
    }
  }

  async #compactNow(demand: Demand): Promise<OutputOf<typeof controlCompact>> {
    const { sessionId } = demand;
    const { bus, epoch, storeTimeoutMs } = this.#deps;
    const view = this.#views.of(sessionId);
    const asked = { epoch, sessionId, knownSeq: view.seq };
    const seen = await bus.request(store.sessionView, asked, { timeoutMs: storeTimeoutMs });
    if (seen.busy) {
      // It waits for somebody; its end is waited for.
      this.#wanted.set(sessionId, demand);
      return { outcome: "busy_later" };
    }
    try {
      await refreshView(this.#deps, sessionId, view, seen);
      const toolbox = await this.#setup.toolboxFor(seen.session);
      return await compactOnDemand(this.#deps, demand, seen, { view, toolbox }, new AbortController().signal);
    } catch (error) {
      this.#views.forget(sessionId);
      throw error;
    }
  }

  /** Stops the session's running turn. False when none runs, or another one than `turnId`. */
  cancel(sessionId: string, turnId: string | undefined): boolean {
    const active = this.#active.get(sessionId);
    if (active?.turnId === undefined || (turnId !== undefined && turnId !== active.turnId)) return false;
    active.stop.abort(new Interruption("stopped"));
    return true;
  }

  /** Takes no new turns; resolves when the running ones have reached a commit. */
  async handOver(): Promise<void> {
    this.#handingOver = true;
    this.#over.abort();
    await Promise.all([...this.#active.values()].map((active) => active.done));
  }

  /** True when something waits behind the turn that was run. */
  async #nextTurn(sessionId: string, active: Active): Promise<boolean> {
    const { bus, epoch, log, settings, storeTimeoutMs } = this.#deps;
    const view = this.#views.of(sessionId);
    faultPoint("agent.before_claim");
    const claim = await bus.request(
      store.turnClaim,
      {
        opId: newId(),
        epoch,
        sessionId,
        knownSeq: view.seq,
        maxClaims,
        ageingSeconds: settings.queue.ageing_seconds,
        ...(hasOutputHooks(settings.hooks) ? { withhold: withheldText } : {}),
      },
      { timeoutMs: storeTimeoutMs },
    );
    faultPoint("agent.after_claim");
    if (claim.status === "empty") return false;
    if (claim.status === "dead") {
      for (const event of claim.finished) bus.publish(sessionEvent, event, { session: sessionId });
      this.#views.forget(sessionId);
      return true;
    }
    // From here on the turn can be stopped.
    active.turnId = claim.turn.turnId;
    // No input joins a turn whose caller waits for the answer to one message: word of it must not disturb its tool calls.
    active.trust = claim.turn.exclusive === true ? undefined : claim.turn.trust;
    active.stop = new AbortController();
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
      await refreshView(this.#deps, sessionId, view, claim);
      for (const message of claim.messages) {
        if (message.turnId === claim.turn.turnId && message.role === "user") {
          bus.publish(sessionEvent, { type: "message", seq: message.seq, message }, { session: sessionId });
        }
      }
      const start = await this.#setup.startOf(claim.turn, claim.session, view, claim.steerable);
      const slots = claim.turn.parent === null ? this.#slots : this.#childSlots;
      // Stopped while it waits for a place, the turn is begun all the same, to end as one that was stopped.
      const slot = new Slot(slots, claim.turn.inboxIds[0] ?? "");
      await slot.back(signals.stop).catch(() => undefined);
      const end: TurnEnd = await runTurn(this.#deps, start, { ...signals, slot }).finally(() => slot.leave());
      view.idleSince = Date.now();
      if (end === "finished" && view.nearlyDue)
        void this.#shorten({ sessionId, instructions: undefined, cause: "ahead" });
      return end === "queued" || end === "again";
    } catch (error) {
      if (WireError.is(error, "STALE_EPOCH")) throw error;
      log.error({ err: error, turn: claim.turn.turnId }, "turn failed");
      this.#views.forget(sessionId);
      await giveUp(this.#deps, claim.turn);
      return true;
    } finally {
      active.turnId = undefined;
    }
  }
}
