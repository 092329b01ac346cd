// Whether and how a conversation is compacted; pure. A plan is carried out by having its summary written, if it has one, and by
// putting `nextRecord` in force.
//
//   regular    the first strategy that keeps what the settings keep and makes the prompt at least a tenth smaller
//   emergency  only when the window is in danger: all but the open step may go, and long results are shown in part
//
// A plan that gains less than a tenth is none: compaction cannot go round in circles, however often it is asked for.
import type { Message } from "@parley/contracts";
import { blockStart, keptStart, openStepStart, protectedEnd } from "./cut.ts";
import { levelTokens, triggers, type CompactionTrigger, type Measured } from "./due.ts";
import { estimateTokens, type Estimate } from "./estimate.ts";
import { lastRequest } from "./last-request.ts";
import { nextRecord } from "./next-record.ts";
import type { CompactionStrategy, Plan, PlanInput } from "./plan-types.ts";
import { isStandIn, viewMessages } from "./view-messages.ts";

/** Tokens a summary may have, at most; what two of the designs this follows give it. */
const maxSummaryTokens = 4_096;
/** With less room than this a summary would lose what it is for. */
const minSummaryTokens = 200;
const charsPerToken = 3;
const maxTranscriptChars = 100_000;
/** Tokens the request for a summary needs behind the prompt. */
const requestTokens = 700;
/** What a plan must leave of the size it is about, at most. */
const progress = 0.9;
/** Share of the size that makes compaction due which a plan tries to get under, so that the next one is far. */
const target = 0.75;
/** Share of the usable window beyond which the settings' wishes give way. */
const danger = 0.9;
/** Lengths of a shown result that are tried in an emergency, in characters; the harsh ones with a cut only. */
const mildCaps = [20_000, 10_000, 5_000, 2_000];
const harshCaps = [1_000, 500];

/** What to do now, or null: nothing is due, or nothing would help. */
export function planCompaction(input: PlanInput): Plan | null {
  const planner = new Planner(input);
  if (planner.tail.length === 0) return null;
  for (const trigger of triggers(input.cause, planner.measured)) {
    const plan = planner.plan(trigger);
    if (plan !== null) return plan;
  }
  return null;
}

/** What changes from one candidate to the next. */
interface Shape {
  strategy: CompactionStrategy;
  /** Index in the tail of the first message that stays; where results are cleared, of the first whose results stay. */
  start: number;
  maxResultChars?: number;
}

class Planner {
  readonly #input: PlanInput;
  readonly #estimate: Estimate;
  readonly #head: readonly Message[];
  readonly #keepFirstTo: number;
  readonly #level: number;
  readonly #openStart: number;
  /** What may be cut, as it is shown. */
  readonly tail: readonly Message[];
  readonly measured: Measured;

  constructor(input: PlanInput) {
    const { record, messages, settings, usableTokens, overheadTokens = 0, turnId, idleMs = 0 } = input;
    this.#input = input;
    this.#estimate = input.estimate ?? estimateTokens;
    const view = viewMessages(record, messages);
    const shown = view.filter((message) => !isStandIn(message));
    const protectedCount =
      record === null
        ? protectedEnd(shown, settings.keep_first, openStepStart(shown, turnId))
        : shown.filter((message) => message.seq <= record.keepFirstTo).length;
    const head = shown.slice(0, protectedCount);
    // A beginning that leaves no room for the rest cannot be kept, or the conversation could never go on.
    const kept = this.#estimate(head) <= usableTokens / 2 ? protectedCount : 0;
    this.#head = shown.slice(0, kept);
    this.#keepFirstTo = this.#head.at(-1)?.seq ?? 0;
    this.tail = shown.slice(kept);
    this.#openStart = openStepStart(this.tail, turnId);
    const sinceLast = shown.filter((message) => message.seq >= (record?.madeAtSeq ?? 0) && message.turnId !== turnId);
    this.measured = {
      settings,
      usableTokens,
      overheadTokens,
      tokens: this.#estimate(view),
      messageCount: shown.length,
      turnCount: new Set(sinceLast.map((message) => message.turnId)).size,
      idleMs,
    };
    this.#level = levelTokens(this.measured);
  }

  plan(trigger: CompactionTrigger): Plan | null {
    if (trigger === "messages") return this.#countTrim();
    const { settings, tokens, usableTokens } = this.measured;
    const ofSize = trigger === "share" || trigger === "tokens" || trigger === "overflow";
    const goal = this.#goal(trigger);
    const start = keptStart(this.tail, settings, {
      latest: this.#openStart,
      budgetTokens: ofSize || trigger === "idle" ? this.#keptBudget(goal) : 0,
      estimate: this.#estimate,
    });
    let best: Plan | null = null;
    for (const strategy of this.#strategies(ofSize)) {
      const plan = this.#candidate(trigger, { strategy, start });
      if (plan === null || !this.#helps(plan)) continue;
      // After an overflow there is one try: it has to reach the goal.
      if (trigger !== "overflow" || plan.tokensAfter <= goal) return plan;
      best ??= plan;
    }
    const inDanger = trigger === "overflow" || (ofSize && tokens > danger * usableTokens);
    return (inDanger ? this.#emergency(trigger, goal) : null) ?? best;
  }

  /** Size to get under. An overflow says that the estimate, or the window, is wrong: half of what was too much. */
  #goal(trigger: CompactionTrigger): number {
    const goal = target * this.#level;
    return trigger === "overflow" ? Math.min(goal, this.measured.tokens / 2) : goal;
  }

  /** Where size is no reason, nothing is left out without a summary, unless that is the only way the settings know. */
  #strategies(ofSize: boolean): readonly CompactionStrategy[] {
    const { strategies } = this.measured.settings;
    return ofSize || !strategies.includes("summarize") ? strategies : strategies.filter((each) => each !== "trim");
  }

  #keptBudget(goal: number): number {
    const { settings, usableTokens } = this.measured;
    const room = goal - this.#estimate(this.#head) - this.#summaryLimit();
    return settings.keep_share === 0 ? 0 : Math.max(0, Math.min(settings.keep_share * usableTokens, room));
  }

  /** Tokens a summary may fill: a small window has room for a small one. */
  #summaryLimit(): number {
    return Math.min(maxSummaryTokens, Math.floor(this.#level / 4));
  }

  #helps(plan: Plan): boolean {
    return plan.tokensAfter <= progress * plan.tokensBefore;
  }

  /** Long results are shown in part; where that does not suffice, everything but the open step goes as well. */
  #emergency(trigger: CompactionTrigger, goal: number): Plan | null {
    const { settings, usableTokens } = this.measured;
    if (settings.strategies.length === 0) return null;
    const start = this.#openStart;
    const enough = trigger === "overflow" ? goal : danger * usableTokens;
    const plans = [
      this.#shortened(trigger, { strategy: "clear_tool_results", start: 0 }, goal, mildCaps),
      ...settings.strategies.map((strategy) =>
        this.#shortened(trigger, { strategy, start }, goal, [...mildCaps, ...harshCaps]),
      ),
    ].filter((plan) => plan !== null && this.#helps(plan));
    let smallest: Plan | null = null;
    for (const plan of plans) {
      if (plan === null) continue;
      if (plan.tokensAfter <= enough) return plan;
      if (smallest === null || plan.tokensAfter < smallest.tokensAfter) smallest = plan;
    }
    return smallest;
  }

  /** The candidate with the longest results that reach the goal, or the shortest there are. */
  #shortened(trigger: CompactionTrigger, shape: Shape, goal: number, caps: readonly number[]): Plan | null {
    let plan = this.#candidate(trigger, shape);
    for (const maxResultChars of caps) {
      if (plan !== null && plan.tokensAfter <= goal) break;
      plan = this.#candidate(trigger, { ...shape, maxResultChars }) ?? plan;
    }
    return plan;
  }

  /** Leaves out the oldest by their number, down to three quarters of the limit, so that it is not done with every message. */
  #countTrim(): Plan | null {
    const { settings, messageCount } = this.measured;
    const wanted = Math.max(
      Math.floor(settings.max_messages * target),
      Math.min(settings.keep_last, settings.max_messages),
    );
    const kept = Math.max(1, wanted - this.#head.length);
    let start = Math.min(this.tail.length - kept, this.#openStart);
    while (start < this.#openStart && this.tail[start]?.role === "tool") start += 1;
    const plan = this.#candidate("messages", { strategy: "trim", start: blockStart(this.tail, Math.max(0, start)) });
    return plan !== null && messageCount - plan.removed <= progress * messageCount ? plan : null;
  }

  #candidate(trigger: CompactionTrigger, asked: Shape): Plan | null {
    const { record } = this.#input;
    const { strategy } = asked;
    const cuts = strategy !== "clear_tool_results";
    const shape = cuts && asked.start > 0 ? { ...asked, start: Math.max(asked.start, this.#afterGap()) } : asked;
    const first = this.tail[shape.start];
    if (first === undefined || (cuts && shape.start === 0)) return null;
    const maxSummaryChars = strategy === "summarize" ? this.#summaryChars(shape.start) : 0;
    if (strategy === "summarize" && maxSummaryChars === 0) return null;
    const fromSeq = cuts ? first.seq : (record?.fromSeq ?? 0);
    const cap = this.#resultCap(fromSeq, shape.maxResultChars);
    const draft: Plan = {
      baseVersion: record?.version ?? 0,
      trigger,
      strategy,
      // Only a cut may take the protection of the beginning back: else it would be lost without a trace.
      keepFirstTo: cuts ? this.#keepFirstTo : (record?.keepFirstTo ?? this.#keepFirstTo),
      fromSeq,
      clearedBefore: Math.max(record?.clearedBefore ?? 0, cuts ? 0 : first.seq),
      ...(cap === undefined ? {} : { maxResultChars: cap }),
      lastRequest: cuts ? lastRequest(this.#input, this.tail, shape.start) : (record?.lastRequest ?? null),
      atSeq: this.#input.messages.at(-1)?.seq ?? 0,
      removed: cuts ? shape.start : 0,
      form: strategy === "summarize" ? this.#form(trigger) : null,
      maxSummaryChars,
      maxTranscriptChars: Math.min(maxTranscriptChars, Math.floor(this.#level * charsPerToken * target)),
      tokensBefore: this.measured.tokens,
      tokensAfter: 0,
    };
    const after = nextRecord(record, draft, "x".repeat(maxSummaryChars));
    return { ...draft, tokensAfter: this.#estimate(viewMessages(after, this.#input.messages)) };
  }

  /** A beginning that lost its protection cannot be cut into: what was left out behind it would be shown again. */
  #afterGap(): number {
    const fromSeq = this.#input.record?.fromSeq ?? 0;
    return Math.max(
      0,
      this.tail.findIndex((message) => message.seq >= fromSeq),
    );
  }

  /** At most half of what it stands for, in characters; 0 when that is too little to say anything. */
  #summaryChars(start: number): number {
    const stays = this.#estimate(this.#head) + this.#estimate(this.tail.slice(start));
    const tokens = Math.min(this.#summaryLimit(), Math.floor((this.measured.tokens - stays) / 2));
    return tokens < minSummaryTokens ? 0 : tokens * charsPerToken;
  }

  /** A cap holds until every result it was made for has gone. */
  #resultCap(fromSeq: number, wanted: number | undefined): number | undefined {
    const { record } = this.#input;
    const held = fromSeq >= (record?.madeAtSeq ?? 0) ? undefined : record?.maxResultChars;
    return wanted === undefined ? held : Math.min(wanted, held ?? wanted);
  }

  #form(trigger: CompactionTrigger): Plan["form"] {
    const { settings, tokens, usableTokens } = this.measured;
    const fits = trigger !== "overflow" && tokens + requestTokens <= usableTokens;
    return fits && settings.model === undefined ? "same_prefix" : "transcript";
  }
}
