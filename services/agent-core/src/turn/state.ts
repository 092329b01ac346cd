// State of a running turn in this leader, and the operations that commit decisions. Each operation is one request to
// the store; the view is updated and events are published after the commit.
import { faultPoint } from "@parley/chassis";
import {
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
import type { HookContext } from "../hooks/payloads.ts";
import { appliesToOutput, redactedText } from "../hooks/matcher.ts";
import type { ModelReply } from "../model/provider.ts";
import type { TurnModel } from "../model/failover.ts";
import { viewMessages } from "../compaction/view-messages.ts";
import { chooseModel } from "./choose-model.ts";
import { withoutToolTraffic } from "../prompt/build-prompt.ts";
import { endWithAnswer, endWithMessages, type Decision } from "./next-action.ts";
import { repeatedCalls, roundsOf } from "../limits/loop-guards.ts";
import { showsSource, type MessageHeaderOptions } from "../prompt/message-header.ts";
import { activeMs, type Progress } from "../limits/limits.ts";
import { resolvePolicy, type TurnPolicy } from "../policy/turn-policy.ts";
import type { Prefix } from "../session/prefix.ts";
import { sentTexts } from "../prompt/sent-texts.ts";
import type { Toolbox } from "../tools/toolbox.ts";
import { TurnUsage } from "../limits/turn-usage.ts";
import type { Round } from "./tool-round.ts";
import type { TurnDeps, TurnStart } from "./dependencies.ts";
import { closedParts, committedEvents, toolIntent, messagesOf, toolStep } from "../session/log-records.ts";
import { audienceOf, mergeTaint, taintOf, isTainted, readsUntrusted, TaintScan, type Taint } from "../policy/taint.ts";
import { PendingToolResults } from "../session/pending-results.ts";
import { applyRecord, appendMessages, type SessionView } from "../session/view.ts";

/** How long an answer may wait to be sent. */
const replyExpiryMs = 24 * 60 * 60 * 1000;

export class TurnState {
  readonly deps: TurnDeps;
  readonly claimed: ClaimedTurn;
  readonly view: SessionView;
  readonly toolbox: Toolbox;
  model: TurnModel;
  readonly session: SessionState;
  policy: TurnPolicy;
  prefix: Prefix;
  /** The next commit must refer to the prefix. */
  newPrefix: boolean;
  /** Calls whose results no message contains yet. */
  open: ToolStep[];
  nextStep: number;
  /** As of the last commit. */
  cancelRequested: boolean;
  /** Streamed text of a model call that is not committed; stored when the call is interrupted. */
  streamedText = "";
  /** Input that may join is waiting, as last reported by the store. */
  steerable: boolean;
  readonly news: string | null;
  readonly #assemble: TurnStart["assemble"];
  readonly #unwritten = new PendingToolResults();
  /** Open calls whose results may be shown: no hook on them is pending. */
  readonly #released = new Set<number>();
  /** From messages of the turn that the view no longer contains. */
  #hidden: Taint;
  readonly #taint = new TaintScan();
  readonly #spent: TurnUsage;
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
    this.policy = resolvePolicy(deps.settings, session);
    this.model = this.#modelOf(this.policy);
    this.open = claimed.openSteps;
    this.nextStep = claimed.nextStep;
    this.cancelRequested = claimed.cancelRequested;
    this.#spent = new TurnUsage(claimed);
    this.#alsoTo = claimed.alsoTo;
  }

  publish(event: LiveEvent | SessionEvent): void {
    this.deps.bus.publish(sessionEvent, event, { session: this.claimed.sessionId });
  }

  /** The context for hooks. */
  get place(): HookContext {
    const { sessionId, sessionKey, turnId } = this.claimed;
    const { permissionMode, profile } = this.policy;
    return { sessionId, sessionKey, turnId, permissionMode, profile };
  }

  /** The running turn's messages, including uncommitted results. */
  get messages(): Message[] {
    return [...messagesOf(this.claimed.turnId, this.view.messages), ...this.pending];
  }

  /** The input of permission checks, document access and memory access. */
  get heard(): Taint {
    const { group } = taintOf(this.messages, this.toolbox);
    const { requested } = this.visible;
    const untrusted = this.#taint.shows(this.view.record, requested, this.pending.length, this.toolbox);
    return mergeTaint(this.#hidden, { untrusted, group });
  }

  /** Whether the turn is tainted: its messages are marked so, even when `permissions.taint` is off. */
  get tainted(): boolean {
    return isTainted(this.claimed, this.heard);
  }

  /**
   * The messages under the view's record, including uncommitted results; `requested`: those that a request contains.
   */
  get visible(): { all: Message[]; requested: Message[] } {
    const all = viewMessages(this.view.record, [...this.view.messages, ...this.pending]);
    const textOnly = this.deps.settings.context.history === "text_only";
    return { all, requested: textOnly ? withoutToolTraffic(all, this.claimed.turnId) : all };
  }

  /** Switches to another part of the conversation; a compaction does not end taint. */
  applyView(record: ViewRecord): void {
    this.#hidden = this.heard;
    applyRecord(this.view, record);
  }

  /** Results that no message contains yet, as the message they will form. */
  get pending(): Message[] {
    const { results } = this.#unwritten;
    if (results.length === 0) return [];
    const { turnId } = this.claimed;
    return [{ seq: this.view.seq + 1, role: "tool", turnId, parts: results, model: null, createdAt: "" }];
  }

  get headings(): MessageHeaderOptions | undefined {
    if (this.session.parentId !== null) return undefined;
    const { settings } = this.deps;
    return { timeZone: settings.agent.time_zone, source: showsSource(settings, this.policy, this.claimed.sessionKey) };
  }

  get said(): string[] {
    return sentTexts(this.messages, (name) => this.#isMessageTool(name));
  }

  /** The answer by which a heartbeat reports nothing; undefined for every other turn. */
  get okToken(): string | undefined {
    return this.claimed.trust === "heartbeat" ? this.deps.settings.heartbeat.ok_token : undefined;
  }

  progress(): Progress {
    const { messages } = this;
    return {
      ...this.#spent.totals,
      elapsedMs: activeMs(this.claimed, Date.now()),
      treeMicros: this.deps.budgets.treeMicros(this.claimed),
      dayMicros: this.deps.budgets.dayMicros(),
      roundsWithoutTools: roundsOf(messages).withoutTools,
      repeatedCalls: repeatedCalls(messages),
    };
  }

  /** Adds a model call made for one of the turn's tool calls; the next commit returns totals that include it. */
  used(usage: Usage, costMicros: number | null): void {
    this.#spent.add(usage, costMicros);
  }

  /** A call's result may be shown. `stored`: the store has it as the hooks returned it. */
  release(n: number, stored: boolean): void {
    this.#released.add(n);
    if (stored) this.#unwritten.drop(n);
  }

  /** Keeps a call's result, which the store does not have yet, for the next commit. */
  keep(n: number, state: "done" | "failed", result: ToolResult): void {
    this.#unwritten.keep(n, state, result);
  }

  /** Open calls whose results still have to run through hooks. */
  get #unseen(): number[] {
    const { hooks } = this.deps.settings;
    return this.open
      .filter(({ n, tool }) => !this.#released.has(n) && appliesToOutput(hooks, this.toolbox.namesOf(tool)))
      .map(({ n }) => n);
  }

  /** Records the outcome of a round of tools. */
  recordRound(round: Round): void {
    this.#unwritten.results = round.results;
    if (!round.skipped) this.open = [];
  }

  /** Applies overrides that a person changed for this session. */
  override(overrides: SessionState["overrides"]): void {
    if (JSON.stringify(overrides) === JSON.stringify(this.session.overrides)) return;
    this.session.overrides = overrides;
    const before = this.policy;
    this.policy = resolvePolicy(this.deps.settings, this.session);
    if (before.model !== this.policy.model) this.model = this.#modelOf(this.policy);
  }

  /**
   * Adds results and notes to the conversation between two model calls, and with `absorb` waiting input that may join.
   * `skipped`: the result of open calls that were not launched; null: there are none.
   */
  async append(
    notes: readonly string[],
    { absorb = false, skipped = null }: { absorb?: boolean; skipped?: string | null } = {},
  ): Promise<void> {
    const { events, alsoTo } = await this.deps.leaderStore.request(store.turnAppend, {
      turnId: this.claimed.turnId,
      results: this.#unwritten.results.length,
      ...this.#unwritten.field,
      tainted: this.tainted,
      skipped,
      notes: notes.map((text): Part[] => [{ type: "text", text }]),
      absorb,
    });
    faultPoint("agent.after_append");
    this.#alsoTo = alsoTo;
    this.#unwritten.written();
    this.open = [];
    this.#follow(events);
  }

  /** Commits a model's whole reply; undefined while the turn continues. */
  async commit(reply: ModelReply, decision: Decision): Promise<{ queued: boolean } | undefined> {
    const { deps, claimed } = this;
    const n = this.nextStep;
    const finish = decision.next === "finish" ? this.#answered(decision.finish) : null;
    const parts = closedParts(decision.parts, reply.rawStopReason, new Date().toISOString());
    const calls = decision.next === "tools" ? decision.calls.map((call) => toolIntent(call, this.toolbox)) : [];
    const note = decision.next === "again" ? decision.note : [];
    const costMicros = deps.models.costOf(this.model, reply.usage, Date.now());
    if (this.newPrefix) await deps.prefixes.keep(this.prefix);
    const { results } = this.#unwritten;
    const { tainted } = this;
    const request: Omit<InputOf<typeof store.stepCommit>, "opId" | "epoch"> = {
      turnId: claimed.turnId,
      n,
      model: reply.model,
      stopReason: reply.rawStopReason,
      usage: reply.usage ?? noUsage,
      ...(costMicros === null ? {} : { costMicros }),
      parts,
      results: results.length,
      ...this.#unwritten.field,
      tainted,
      toolCalls: calls,
      outgoing: finish === null ? [] : this.#outgoing(finish),
      ...(note.length === 0 ? {} : { note }),
      ...(this.newPrefix ? { prefixHash: this.prefix.hash } : {}),
      finish,
    };
    const committed = await deps.leaderStore.request(store.stepCommit, request);
    this.newPrefix = false;
    deps.budgets.spend(claimed, costMicros);
    const written = { turnId: claimed.turnId, results, parts, model: reply.model, note, finish, tainted };
    this.#follow(committedEvents(written, committed));
    this.streamedText = "";
    this.#unwritten.written();
    this.nextStep = n + 1 + calls.length;
    this.#spent.committed(committed, calls.length);
    this.open = calls.map((call, index) => toolStep(claimed.turnId, n + 1 + index, call));
    this.cancelRequested = committed.cancelRequested;
    this.override(committed.overrides);
    this.steerable = committed.steerable;
    return finish === null ? undefined : { queued: committed.queued };
  }

  /**
   * Ends the turn without a further model call. `spoken`: text for people, if it differs from what the output mode
   * sends.
   */
  async finish(finish: Finish, spoken?: string | null): Promise<{ queued: boolean }> {
    faultPoint("agent.before_finish");
    const shown =
      this.streamedText === ""
        ? []
        : closedParts([{ type: "text", text: this.streamedText }], "cancelled", new Date().toISOString());
    // The next request contains the interrupted answer, so the prefix it was made under must be stored as well.
    const keepsPrefix = this.newPrefix && shown.length > 0;
    if (keepsPrefix) await this.deps.prefixes.keep(this.prefix);
    const unseen = this.#unseen;
    // Results that no message contains yet may have arrived; whether they are untrusted is not known here.
    const tainted = this.tainted || this.open.some(({ tool }) => readsUntrusted(tool, this.toolbox));
    const { events, queued } = await this.deps.leaderStore.request(store.turnFinish, {
      turnId: this.claimed.turnId,
      parts: shown,
      model: shown.length === 0 ? null : this.model.model,
      ...(keepsPrefix ? { prefixHash: this.prefix.hash } : {}),
      ...this.#unwritten.field,
      tainted,
      ...(unseen.length === 0 ? {} : { withhold: { steps: unseen, text: redactedText } }),
      unsettled: finish.state === "cancelled" ? "Cancelled" : "Interrupted before the call was run.",
      outgoing: spoken === undefined ? this.#outgoing(finish) : this.#toPeople(spoken),
      finish,
    });
    faultPoint("agent.after_finish");
    this.#follow(events);
    return { queued };
  }

  /** A compaction assembles system prompt and tools again. */
  async renewPrefix(): Promise<void> {
    this.prefix = await this.#assemble(this.policy, audienceOf(this.claimed, this.heard));
    this.newPrefix = true;
  }

  /** Parks the turn; false when what it waits for has arrived meanwhile. */
  async park(waitingFor: number[], wakeAt: string | null): Promise<boolean> {
    faultPoint("agent.before_park");
    const { settled } = this.#unwritten;
    const { parked } = await this.deps.leaderStore.request(store.turnPark, {
      turnId: this.claimed.turnId,
      waitingFor,
      wakeAt,
      ...(settled.length === 0 ? {} : { settled }),
    });
    this.#unwritten.told();
    faultPoint("agent.after_park");
    if (parked) {
      const names = this.open.filter((step) => waitingFor.includes(step.n)).map((step) => step.tool);
      this.publish({ type: "turn.parked", turnId: this.claimed.turnId, waitingFor: names });
    }
    return parked;
  }

  /** Settles kept results in the store, so that the next leader does not run these calls again. */
  async leave(): Promise<void> {
    const { deps, claimed } = this;
    for (const { n, state, result } of this.#unwritten.settled) {
      const settled = { turnId: claimed.turnId, n, state, result };
      await deps.leaderStore.request(store.stepSettle, settled);
    }
    this.#unwritten.told();
  }

  #modelOf(policy: TurnPolicy): TurnModel {
    const { models, log } = this.deps;
    const { turnId } = this.claimed;
    return chooseModel(models, policy, {
      onFailover: (failover) => this.publish({ type: "model.failover", turnId, ...failover }),
      onUnavailable: (error) => {
        log.warn({ err: error, turn: turnId }, "session model unavailable: the agent's own model answers");
        this.publish({ type: "notice", turnId, text: `${error.message}. The agent's own model answers.` });
      },
    });
  }

  /** Applies events that the store has logged to the view and publishes them. */
  #follow(events: readonly DurableEvent[]): void {
    for (const event of events) {
      appendMessages(this.view, event.type === "message" ? [event.message] : [], event.seq);
      this.publish(event);
    }
  }

  #answered(finish: Finish): Finish {
    const said = sentTexts(this.messages, (name) => this.#isMessageTool(name), true);
    return endWithAnswer(finish, this.policy.output, said);
  }

  #isMessageTool(name: string): boolean {
    return this.toolbox.find(name)?.descriptor.name === "message";
  }

  #outgoing(finish: Finish): Outgoing[] {
    const { output } = this.deps.settings;
    const { said, okToken } = this;
    const context = { output: this.policy.output, said, unspoken: output.unspoken, okToken };
    return this.#toPeople(endWithMessages(finish, context));
  }

  #toPeople(text: string | null): Outgoing[] {
    if (text === null) return [];
    const { replyTo } = this.claimed;
    const addresses = [...(replyTo === null ? [] : [replyTo]), ...this.#alsoTo];
    return addresses.map((address) => ({ address, text, expiresInMs: replyExpiryMs }));
  }
}
