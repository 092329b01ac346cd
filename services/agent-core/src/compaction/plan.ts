// Plans whether and how a conversation is compacted; pure. The caller has the summary written, if the plan has one, and applies
// `nextRecord`.
//
//   regular    the first strategy that retains what the settings require and shrinks the prompt by at least a tenth
//   emergency  only if the prompt may exceed the window: everything but the open step may be removed, and long results are truncated
//
// A plan that saves less than a tenth is discarded, so that repeated requests cannot loop.
import type { Message } from "@parley/contracts";
import { blockStart, retainedStart, openStepStart, protectedEnd } from "./cut-points.ts";
import { triggerTokens, triggers, type CompactionTrigger, type ContextUsage } from "./triggers.ts";
import { estimateTokens, type Estimate } from "../model/tokens.ts";
import { lastRequest } from "./user-requests.ts";
import { nextRecord } from "./next-record.ts";
import type { CompactionStrategy, Plan, PlanInput } from "./plan-types.ts";
import { isPlaceholder, viewMessages } from "./view-messages.ts";

/** Maximum tokens of a summary. */
const maxSummaryTokens = 4_096;
/** A shorter summary is not useful. */
const minSummaryTokens = 200;
const charsPerToken = 3;
const maxTranscriptChars = 100_000;
/** Tokens of the summary request, which is appended to the prompt. */
const requestTokens = 700;
/** Maximum size after a plan, as a share of the size before. */
const progress = 0.9;
/** Target size of a plan, as a share of the trigger size, so that the next compaction is not due soon. */
const target = 0.75;
/** Share of the usable window above which the retention settings are ignored. */
const danger = 0.9;
/** Maximum characters of a tool result that an emergency tries; the harsh values only together with a cut. */
const mildCaps = [20_000, 10_000, 5_000, 2_000];
const harshCaps = [1_000, 500];

/** The plan to apply now; null if no compaction is due, or none would help. */
export function planCompaction(input: PlanInput): Plan | null {
  const planner = new Planner(input);
  if (planner.tail.length === 0) return null;
  for (const trigger of triggers(input.cause, planner.measured)) {
    const plan = planner.plan(trigger);
    if (plan !== null) return plan;
  }
  return null;
}

/** The properties in which candidates differ. */
interface Shape {
  strategy: CompactionStrategy;
  /** Index in the tail of the first retained message; for `clear_tool_results`, of the first message with retained results. */
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
  /** The messages of the view that may be removed. */
  readonly tail: readonly Message[];
  readonly measured: ContextUsage;

  constructor(input: PlanInput) {
    const { record, messages, settings, usableTokens, overheadTokens = 0, turnId, idleMs = 0 } = input;
    this.#input = input;
    this.#estimate = input.estimate ?? estimateTokens;
    const view = viewMessages(record, messages);
    const shown = view.filter((message) => !isPlaceholder(message));
    const protectedCount =
      record === null
        ? protectedEnd(shown, settings.keep_first, openStepStart(shown, turnId))
        : shown.filter((message) => message.seq <= record.keepFirstTo).length;
    const head = shown.slice(0, protectedCount);
    // A protected beginning that fills more than half of the window would block the conversation, so it loses its protection.
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
    this.#level = triggerTokens(this.measured);
  }

  plan(trigger: CompactionTrigger): Plan | null {
    if (trigger === "messages") return this.#countTrim();
    const { settings, tokens, usableTokens } = this.measured;
    const ofSize = trigger === "share" || trigger === "tokens" || trigger === "overflow";
    const goal = this.#goal(trigger);
    const start = retainedStart(this.tail, settings, {
      latest: this.#openStart,
      budgetTokens: ofSize || trigger === "idle" ? this.#keptBudget(goal) : 0,
      estimate: this.#estimate,
    });
    let best: Plan | null = null;
    for (const strategy of this.#strategies(ofSize)) {
      const plan = this.#candidate(trigger, { strategy, start });
      if (plan === null || !this.#helps(plan)) continue;
      // After an overflow there is only one attempt, which has to reach the goal.
      if (trigger !== "overflow" || plan.tokensAfter <= goal) return plan;
      best ??= plan;
    }
    const inDanger = trigger === "overflow" || (ofSize && tokens > danger * usableTokens);
    return (inDanger ? this.#emergency(trigger, goal) : null) ?? best;
  }

  /** Target size. An overflow means that the estimate or the window is wrong: then half of the current size. */
  #goal(trigger: CompactionTrigger): number {
    const goal = target * this.#level;
    return trigger === "overflow" ? Math.min(goal, this.measured.tokens / 2) : goal;
  }

  /** Unless size is the trigger, messages are not removed without a summary, except if the settings allow only that. */
  #strategies(ofSize: boolean): readonly CompactionStrategy[] {
    const { strategies } = this.measured.settings;
    return ofSize || !strategies.includes("summarize") ? strategies : strategies.filter((each) => each !== "trim");
  }

  #keptBudget(goal: number): number {
    const { settings, usableTokens } = this.measured;
    const room = goal - this.#estimate(this.#head) - this.#summaryLimit();
    return settings.keep_share === 0 ? 0 : Math.max(0, Math.min(settings.keep_share * usableTokens, room));
  }

  /** Maximum tokens of a summary, scaled to the window. */
  #summaryLimit(): number {
    return Math.min(maxSummaryTokens, Math.floor(this.#level / 4));
  }

  #helps(plan: Plan): boolean {
    return plan.tokensAfter <= progress * plan.tokensBefore;
  }

  /** Truncates long results; if that does not suffice, also removes everything but the open step. */
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

  /** The candidate with the longest results that reaches the goal, else the one with the shortest results. */
  #shortened(trigger: CompactionTrigger, shape: Shape, goal: number, caps: readonly number[]): Plan | null {
    let plan = this.#candidate(trigger, shape);
    for (const maxResultChars of caps) {
      if (plan !== null && plan.tokensAfter <= goal) break;
      plan = this.#candidate(trigger, { ...shape, maxResultChars }) ?? plan;
    }
    return plan;
  }

  /** Removes the oldest messages down to three quarters of the limit, so that not every message triggers it. */
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

  #candidate(trigger: CompactionTrigger, candidate: Shape): Plan | null {
    const { record } = this.#input;
    const { strategy } = candidate;
    const cuts = strategy !== "clear_tool_results";
    const shape =
      cuts && candidate.start > 0 ? { ...candidate, start: Math.max(candidate.start, this.#afterGap()) } : candidate;
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
      // Only a cut may remove the protection of the beginning.
      keepFirstTo: cuts ? this.#keepFirstTo : (record?.keepFirstTo ?? this.#keepFirstTo),
      fromSeq,
      clearedBefore: Math.max(record?.clearedBefore ?? 0, cuts ? 0 : first.seq),
      ...(cap === undefined ? {} : { maxResultChars: cap }),
      lastRequest: cuts ? lastRequest(this.#input, this.tail, shape.start) : (record?.lastRequest ?? null),
      atSeq: this.#input.lastSeq ?? this.#input.messages.at(-1)?.seq ?? 0,
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

  /** A cut inside a formerly protected beginning would show removed messages again, so it moves after the gap. */
  #afterGap(): number {
    const fromSeq = this.#input.record?.fromSeq ?? 0;
    return Math.max(
      0,
      this.tail.findIndex((message) => message.seq >= fromSeq),
    );
  }

  /** Maximum characters of the summary: at most half of the removed messages; 0 if that is too short to be useful. */
  #summaryChars(start: number): number {
    const stays = this.#estimate(this.#head) + this.#estimate(this.tail.slice(start));
    const tokens = Math.min(this.#summaryLimit(), Math.floor((this.measured.tokens - stays) / 2));
    return tokens < minSummaryTokens ? 0 : tokens * charsPerToken;
  }

  /** A limit for results stays until all results for which it was set are removed. */
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
