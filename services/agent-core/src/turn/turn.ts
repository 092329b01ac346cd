// A turn while it runs in this leader: what it has, and the thin acts that commit what was decided. Each act is one request to
// the store; the view, and those who watch, hear of it after the commit.
import { faultPoint } from "@parley/chassis";
import {
  newId,
  noUsage,
  sessionEvent,
  store,
  type ClaimedTurn,
  type DurableEvent,
  type Finish,
  type InputOf,
  type LiveEvent,
  type Message,
  type Outgoing,
  type Part,
  type SessionEvent,
  type SessionState,
  type ToolResult,
  type ToolStep,
  type Usage,
  type ViewRecord,
} from "@parley/contracts";
import type { HookPlace } from "../hooks/payloads.ts";
import { watchesOutput, withheldText } from "../hooks/matches.ts";
import type { ModelReply } from "../model/provider.ts";
import type { TurnModel } from "../model/failover.ts";
import { viewMessages } from "../compaction/view-messages.ts";
import { chooseModel } from "./choose-model.ts";
import { saidOnly } from "./context.ts";
import { answeredEnd, spokenEnd, type Decision } from "./decide.ts";
import { repeatedCalls, roundsOf } from "./guards.ts";
import { namesSource, type HeadingOptions } from "./heading.ts";
import { workedMs, type Progress } from "./limits.ts";
import { policyOf, type Policy } from "./policy.ts";
import type { Prefix } from "./prefix.ts";
import { saidTexts } from "./said.ts";
import type { Toolbox } from "./toolbox.ts";
import { Spent } from "./spent.ts";
import type { Round } from "./tool-round.ts";
import type { TurnDeps, TurnStart } from "./turn-deps.ts";
import { closed, committedEvents, intentOf, messagesOf, stepOf } from "./turn-log.ts";
import { audienceOf, heardBoth, heardIn, isTainted, readsUntrusted, TaintScan, type Heard } from "./trust.ts";
import { Unwritten } from "./unwritten.ts";
import { applyRecord, extend, type View } from "./view.ts";

/** How long an answer may wait to be sent. */
const replyExpiryMs = 24 * 60 * 60 * 1000;

export class Turn {
  readonly deps: TurnDeps;
  readonly claimed: ClaimedTurn;
  readonly view: View;
  readonly toolbox: Toolbox;
  model: TurnModel;
  readonly session: SessionState;
  policy: Policy;
  prefix: Prefix;
  /** To be named in the next commit. */
  newPrefix: boolean;
  /** Calls whose results are in no message yet. */
  open: ToolStep[];
  nextStep: number;
  /** As of the last commit. */
  cancelRequested: boolean;
  /** What has been streamed of a model call that is not committed, kept if it is cut. */
  shown = "";
  /** Input waits that may join, as the store has said last. */
  steerable: boolean;
  readonly news: string | null;
  readonly #assemble: TurnStart["assemble"];
  readonly #unwritten = new Unwritten();
  /** Open calls whose results may be read: no hook on them is left to be asked. */
  readonly #released = new Set<number>();
  /** Of the turn's messages that the view does not show any more. */
  #hidden: Heard;
  readonly #taint = new TaintScan();
  readonly #spent: Spent;
  #alsoTo: ClaimedTurn["alsoTo"];

  constructor(deps: TurnDeps, start: TurnStart) {
    const { claimed, session } = start;
    this.deps = deps;
    this.claimed = claimed;
    this.session = session;
    this.view = start.view;
    this.toolbox = start.toolbox;
    this.prefix = start.prefix;
    this.newPrefix = start.newPrefix;
    this.steerable = start.steerable;
    this.news = start.news;
    this.#assemble = start.assemble;
    this.#hidden = start.hidden;
    this.policy = policyOf(deps.settings, session);
    this.model = this.#modelOf(this.policy);
    this.open = claimed.openSteps;
    this.nextStep = claimed.nextStep;
    this.cancelRequested = claimed.cancelRequested;
    this.#spent = new Spent(claimed);
    this.#alsoTo = claimed.alsoTo;
  }

  say(event: LiveEvent | SessionEvent): void {
    this.deps.bus.publish(sessionEvent, event, { session: this.claimed.sessionId });
  }

  /** Where hooks are told that they are. */
  get place(): HookPlace {
    const { sessionId, sessionKey, turnId } = this.claimed;
    const { permissionMode, profile } = this.policy;
    return { sessionId, sessionKey, turnId, permissionMode, profile };
  }

  /** The running turn's messages, what is not committed yet included. */
  get messages(): Message[] {
    return [...messagesOf(this.claimed.turnId, this.view.messages), ...this.pending];
  }

  /** What permissions, documents and memory go by. */
  get heard(): Heard {
    const { group } = heardIn(this.messages, this.toolbox);
    const { requested } = this.visible;
    const untrusted = this.#taint.shows(this.view.record, requested, this.pending.length, this.toolbox);
    return heardBoth(this.#hidden, { untrusted, group });
  }

  /** Whether the turn is tainted: what is written in it is marked so, also where `permissions.taint` is off. */
  get tainted(): boolean {
    return isTainted(this.claimed, this.heard);
  }

  /** The messages under the view's record, results in no message yet included; `requested`: those that a request shows of them. */
  get visible(): { all: Message[]; requested: Message[] } {
    const all = viewMessages(this.view.record, [...this.view.messages, ...this.pending]);
    const textOnly = this.deps.settings.context.history === "text_only";
    return { all, requested: textOnly ? saidOnly(all, this.claimed.turnId) : all };
  }

  /** Shows another part of the conversation from now on; a compaction does not end taint. */
  shorten(record: ViewRecord): void {
    this.#hidden = this.heard;
    applyRecord(this.view, record);
  }

  /** Results that are in no message yet, as the message they will be. */
  get pending(): Message[] {
    const { results } = this.#unwritten;
    if (results.length === 0) return [];
    const { turnId } = this.claimed;
    return [{ seq: this.view.seq + 1, role: "tool", turnId, parts: results, model: null, createdAt: "" }];
  }

  get headings(): HeadingOptions | undefined {
    if (this.session.parentId !== null) return undefined;
    const { settings } = this.deps;
    return { timeZone: settings.agent.time_zone, source: namesSource(settings, this.policy, this.claimed.sessionKey) };
  }

  get said(): string[] {
    return saidTexts(this.messages, (name) => this.#isMessageTool(name));
  }

  /** A heartbeat's word for having nothing to say; undefined for every other turn. */
  get okToken(): string | undefined {
    return this.claimed.trust === "heartbeat" ? this.deps.settings.heartbeat.ok_token : undefined;
  }

  progress(): Progress {
    const { messages } = this;
    return {
      ...this.#spent.totals,
      elapsedMs: workedMs(this.claimed, Date.now()),
      treeMicros: this.deps.budgets.treeMicros(this.claimed),
      dayMicros: this.deps.budgets.dayMicros(),
      roundsWithoutTools: roundsOf(messages).withoutTools,
      repeatedCalls: repeatedCalls(messages),
    };
  }

  /** A model was asked for one of the turn's calls: the next commit brings the same from the store. */
  used(usage: Usage, costMicros: number | null): void {
    this.#spent.add(usage, costMicros);
  }

  /** The hooks on a call's result were asked. `rewritten`: what they have made of it; null: it stands. */
  release(n: number, rewritten: ToolResult | null): void {
    this.#released.add(n);
    if (rewritten !== null) this.#unwritten.rewrite(n, rewritten);
  }

  /** Takes the result of a call that the store has not been told, for the next commit. */
  keep(n: number, state: "done" | "failed", result: ToolResult): void {
    this.#unwritten.keep(n, state, result);
  }

  /** Open calls whose results hooks want to see and have not. */
  get #unseen(): number[] {
    const { hooks } = this.deps.settings;
    return this.open
      .filter(({ n, tool }) => !this.#released.has(n) && watchesOutput(hooks, this.toolbox.namesOf(tool)))
      .map(({ n }) => n);
  }

  /** Takes what a round of tools has brought. */
  took(round: Round): void {
    this.#unwritten.results = round.results;
    if (!round.skipped) this.open = [];
  }

  /** What a person has changed for this session applies from here on. */
  override(overrides: SessionState["overrides"]): void {
    if (JSON.stringify(overrides) === JSON.stringify(this.session.overrides)) return;
    this.session.overrides = overrides;
    const before = this.policy;
    this.policy = policyOf(this.deps.settings, this.session);
    if (before.model !== this.policy.model) this.model = this.#modelOf(this.policy);
  }

  /**
   * Adds to the conversation between two model calls: results, notes, and with `absorb` what waits and may join. `skipped`: the
   * result of open calls that were not launched; null: there are none.
   */
  async append(
    notes: readonly string[],
    { absorb = false, skipped = null }: { absorb?: boolean; skipped?: string | null } = {},
  ): Promise<void> {
    const { events, alsoTo } = await this.deps.bus.request(
      store.turnAppend,
      {
        opId: newId(),
        epoch: this.deps.epoch,
        turnId: this.claimed.turnId,
        results: this.#unwritten.results.length,
        ...this.#unwritten.fields,
        tainted: this.tainted,
        skipped,
        notes: notes.map((text): Part[] => [{ type: "text", text }]),
        absorb,
      },
      { timeoutMs: this.deps.storeTimeoutMs },
    );
    faultPoint("agent.after_append");
    this.#alsoTo = alsoTo;
    this.#unwritten.written();
    this.open = [];
    this.#follow(events);
  }

  /** Commits a model's reply whole; undefined while the turn goes on. */
  async commit(reply: ModelReply, decision: Decision): Promise<{ queued: boolean } | undefined> {
    const { deps, claimed } = this;
    const n = this.nextStep;
    const finish = decision.next === "finish" ? this.#answered(decision.finish) : null;
    const parts = closed(decision.parts, reply.rawStopReason, new Date().toISOString());
    const calls = decision.next === "tools" ? decision.calls.map((call) => intentOf(call, this.toolbox)) : [];
    const note = decision.next === "again" ? decision.note : [];
    const costMicros = deps.models.costOf(this.model, reply.usage, Date.now());
    if (this.newPrefix) await deps.prefixes.keep(this.prefix, deps.storeTimeoutMs);
    const { results } = this.#unwritten;
    const { tainted } = this;
    const request: InputOf<typeof store.stepCommit> = {
      opId: newId(),
      epoch: deps.epoch,
      turnId: claimed.turnId,
      n,
      model: reply.model,
      stopReason: reply.rawStopReason,
      usage: reply.usage ?? noUsage,
      ...(costMicros === null ? {} : { costMicros }),
      parts,
      results: results.length,
      ...this.#unwritten.fields,
      tainted,
      toolCalls: calls,
      outgoing: finish === null ? [] : this.#outgoing(finish),
      ...(note.length === 0 ? {} : { note }),
      ...(this.newPrefix ? { prefixHash: this.prefix.hash } : {}),
      finish,
    };
    const committed = await deps.bus.request(store.stepCommit, request, { timeoutMs: deps.storeTimeoutMs });
    this.newPrefix = false;
    deps.budgets.spend(claimed, costMicros);
    const written = { turnId: claimed.turnId, results, parts, model: reply.model, note, finish, tainted };
    this.#follow(committedEvents(written, committed));
    this.shown = "";
    this.#unwritten.written();
    this.nextStep = n + 1 + calls.length;
    this.#spent.committed(committed, calls.length);
    this.open = calls.map((call, index) => stepOf(claimed.turnId, n + 1 + index, call));
    this.cancelRequested = committed.cancelRequested;
    this.override(committed.overrides);
    this.steerable = committed.steerable;
    return finish === null ? undefined : { queued: committed.queued };
  }

  /** Ends the turn without a further model call. `spoken`: what people are told, if it is not as the output mode has it. */
  async finish(finish: Finish, spoken?: string | null): Promise<{ queued: boolean }> {
    faultPoint("agent.before_finish");
    const shown =
      this.shown === "" ? [] : closed([{ type: "text", text: this.shown }], "cancelled", new Date().toISOString());
    // An answer cut short is in the next request like any other: the prefix it was made under has to be there too.
    const keepsPrefix = this.newPrefix && shown.length > 0;
    if (keepsPrefix) await this.deps.prefixes.keep(this.prefix, this.deps.storeTimeoutMs);
    const unseen = this.#unseen;
    // Results that no message contains yet may have come since; whether they are untrusted is not known here.
    const tainted = this.tainted || this.open.some(({ tool }) => readsUntrusted(tool, this.toolbox));
    const { events, queued } = await this.deps.bus.request(
      store.turnFinish,
      {
        opId: newId(),
        epoch: this.deps.epoch,
        turnId: this.claimed.turnId,
        parts: shown,
        model: shown.length === 0 ? null : this.model.model,
        ...(keepsPrefix ? { prefixHash: this.prefix.hash } : {}),
        ...this.#unwritten.fields,
        tainted,
        ...(unseen.length === 0 ? {} : { withhold: { steps: unseen, text: withheldText } }),
        unsettled: finish.state === "cancelled" ? "Cancelled" : "Interrupted before it was run.",
        outgoing: spoken === undefined ? this.#outgoing(finish) : this.#toPeople(spoken),
        finish,
      },
      { timeoutMs: this.deps.storeTimeoutMs },
    );
    faultPoint("agent.after_finish");
    this.#follow(events);
    return { queued };
  }

  /** After a compaction system prompt and tools are fixed anew. */
  async renewPrefix(): Promise<void> {
    this.prefix = await this.#assemble(this.policy, audienceOf(this.claimed, this.heard));
    this.newPrefix = true;
  }

  /** Puts the turn aside; false when what it waits for has come meanwhile. */
  async park(waitingFor: number[], wakeAt: string | null): Promise<boolean> {
    faultPoint("agent.before_park");
    const { settled } = this.#unwritten;
    const { parked } = await this.deps.bus.request(
      store.turnPark,
      {
        opId: newId(),
        epoch: this.deps.epoch,
        turnId: this.claimed.turnId,
        waitingFor,
        wakeAt,
        ...(settled.length === 0 ? {} : { settled }),
      },
      { timeoutMs: this.deps.storeTimeoutMs },
    );
    this.#unwritten.told();
    faultPoint("agent.after_park");
    if (parked) {
      const names = this.open.filter((step) => waitingFor.includes(step.n)).map((step) => step.tool);
      this.say({ type: "turn.parked", turnId: this.claimed.turnId, waitingFor: names });
    }
    return parked;
  }

  /** Has the store keep what calls have brought: the next leader need not run them again. */
  async leave(): Promise<void> {
    const { deps, claimed } = this;
    for (const { n, state, result } of this.#unwritten.settled) {
      const settled = { opId: newId(), epoch: deps.epoch, turnId: claimed.turnId, n, state, result };
      await deps.bus.request(store.stepSettle, settled, { timeoutMs: deps.storeTimeoutMs });
    }
    this.#unwritten.told();
  }

  #modelOf(policy: Policy): TurnModel {
    const { models, log } = this.deps;
    const { turnId } = this.claimed;
    return chooseModel(models, policy, {
      onFailover: (failover) => this.say({ type: "model.failover", turnId, ...failover }),
      onUnavailable: (error) => {
        log.warn({ err: error, turn: turnId }, "the session's model cannot be asked; the agent's own answers");
        this.say({ type: "notice", turnId, text: `${error.message}. The agent's own model answers.` });
      },
    });
  }

  /** What the store has added to the log stands in the view as well, and those who watch hear of it. */
  #follow(events: readonly DurableEvent[]): void {
    for (const event of events) {
      extend(this.view, event.type === "message" ? [event.message] : [], event.seq);
      this.say(event);
    }
  }

  #answered(finish: Finish): Finish {
    const said = saidTexts(this.messages, (name) => this.#isMessageTool(name), true);
    return answeredEnd(finish, this.policy.output, said);
  }

  #isMessageTool(name: string): boolean {
    return this.toolbox.find(name)?.descriptor.name === "message";
  }

  #outgoing(finish: Finish): Outgoing[] {
    const { output } = this.deps.settings;
    const { said, okToken } = this;
    const context = { output: this.policy.output, said, unspoken: output.unspoken, okToken };
    return this.#toPeople(spokenEnd(finish, context));
  }

  #toPeople(text: string | null): Outgoing[] {
    if (text === null) return [];
    const { replyTo } = this.claimed;
    const addresses = [...(replyTo === null ? [] : [replyTo]), ...this.#alsoTo];
    return addresses.map((address) => ({ address, text, expiresInMs: replyExpiryMs }));
  }
}
