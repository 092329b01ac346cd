// A session as in the store and in a leader, with every decision made by the loop's own pure functions. The caller
// supplies each step's events (steering, cut answers, cancellation, crashes, compaction …). The model covers only what
// writes: the log, open calls, the queue, and the leader's memory, which a crash discards.
import {
  noUsage,
  type CompactionSettings,
  type Message,
  type Part,
  type Sender,
  type ToolCall,
  type ToolResult,
  type ViewRecord,
} from "@parley/contracts";
import type { CompactionCause } from "../../src/compaction/triggers.ts";
import { nextRecord } from "../../src/compaction/next-record.ts";
import { planCompaction } from "../../src/compaction/plan.ts";
import { viewMessages } from "../../src/compaction/view-messages.ts";
import type { PromptMessage, StopReason } from "../../src/model/provider.ts";
import { buildPrompt, withoutToolTraffic } from "../../src/prompt/build-prompt.ts";
import { nextAction, type DecideContext } from "../../src/turn/next-action.ts";
import { note, repeatWarningDue, roundsOf, unfinishedText } from "../../src/limits/loop-guards.ts";
import { mayRenew, prefixOf, type Prefix } from "../../src/session/prefix.ts";
import { sentTexts } from "../../src/prompt/sent-texts.ts";
import { calledNames, Toolbox } from "../../src/tools/toolbox.ts";
import { applyRecord, emptyView, appendMessages, prepend, type SessionView } from "../../src/session/view.ts";
import { unwrapCalls } from "../../src/prompt/indirect-calls.ts";
import { tool } from "./support.ts";

export interface Input {
  from: Sender;
  parts: Part[];
  /** May join the running turn. */
  steers: boolean;
}

/**
 * How a tool call continues. `waits`: for an approval or a sub-agent; `lost`: its runner died, the outcome is unknown.
 */
export type CallEnd = "done" | "failed" | "lost" | "waits";

/** Where a leader may crash, and where a person may stop the turn. */
export const points = ["claimed", "tools", "settled", "appended", "compacted", "asked", "committed"] as const;
export type Point = (typeof points)[number];

export interface Step {
  input: Input[];
  /** Contexts that hooks add: at the start, after results. */
  contexts: string[];
  calls: CallEnd[];
  /** A result's text; equal calls have equal results. */
  results: string[];
  /** A hook rewrites the output of the tools called here. */
  rewritten: boolean;
  compaction: { settings: CompactionSettings; cause: CompactionCause; usableTokens: number } | null;
  reply: { parts: Part[]; calls: { name: string; input: string }[]; stopReason: StopReason };
  stopHook: boolean;
  crash: Point | null;
  /** How many messages of the log the next leader reads back; null: all. */
  readBack: number | null;
  cancel: Point | null;
  /** The part of an interrupted answer that was already streamed. */
  shown: string;
}

export interface Request {
  /** System prompt and tools. */
  prefix: string;
  prompt: PromptMessage[];
  /** Requests of one era continue each other: between them nothing was compacted or omitted when reading back. */
  era: string;
  turnId: string;
  /** The model paused itself before this request: its own text is last. */
  paused: boolean;
}

interface OpenCall {
  call: ToolCall;
  result: ToolResult | null;
}

class Crash extends Error {}
class Cancelled extends Error {}

const at = "2026-01-01T00:00:00.000Z";
const headings = { timeZone: "UTC", source: true };

/** Some tools have full definitions, the others are deferred. */
export const rareTools = ["cron", "speak", "mcp__files__list", "mcp__files__move"];
const toolbox = () =>
  new Toolbox(
    ["read", "message", ...rareTools].map((name) => tool(name)),
    "none",
    [],
    { hasTool: () => true },
    { search_above: 3, always: ["read", "message"], disabled: [] },
  );
/** Two equal toolboxes, as two leaders create them. */
const toolboxes = [toolbox(), toolbox()] as const;

export class SessionModel {
  /** The requests to the model, in order. */
  readonly requests: Request[] = [];
  /** The calls of the model, as it wrote them. */
  readonly written = new Map<string, ToolCall>();
  readonly #around: Pick<DecideContext, "output" | "onMaxTokens" | "maxNudges" | "unspoken">;
  readonly #textOnly: boolean;
  // The store.
  readonly #log: Message[] = [];
  #seq = 0;
  #record: ViewRecord | null = null;
  readonly #queue: Input[] = [];
  #turn = 0;
  #running = false;
  #open: OpenCall[] = [];
  #callCount = 0;
  #keptPrefix: Prefix | null = null;
  #paused = false;
  // The leader.
  #view: SessionView = emptyView();
  #toolbox = toolboxes[0];
  #prefix: Prefix = this.#freshPrefix();
  #pending: ToolResult[] = [];
  #took = false;
  readonly #toRewrite = new Set<string>();
  /**
   * Incremented when the start of the leader's view changes: it read back less than everything, or everything after
   * that.
   */
  #readings = 0;
  #partly = false;

  constructor(around: Pick<DecideContext, "output" | "onMaxTokens" | "maxNudges" | "unspoken">, textOnly: boolean) {
    this.#around = around;
    this.#textOnly = textOnly;
  }

  /** One round of the loop, as far as it gets. */
  run(step: Step): void {
    this.#queue.push(...step.input);
    try {
      this.#round(step);
    } catch (error) {
      if (error instanceof Crash) this.#readBack(step.readBack);
      else if (error instanceof Cancelled) this.#end("Cancelled", step.shown);
      else throw error;
    }
  }

  get log(): readonly Message[] {
    return this.#log;
  }

  #round(step: Step): void {
    if (!this.#running) {
      if (this.#queue.length === 0) return;
      this.#claim();
      this.#reach("claimed", step);
      if (step.contexts.length > 0) this.#append(step.contexts.map(textNote), false);
    }
    const notes: Part[][] = [];
    if (this.#open.length > 0 && !this.#took) {
      this.#reach("tools", step);
      if (!this.#runTools(step)) return;
      this.#reach("settled", step);
      notes.push(...step.contexts.map(textNote));
      if (repeatWarningDue(this.#turnMessages())) notes.push(note("repeated", "it has not changed."));
    }
    if (notes.length > 0 || this.#queue.some(({ steers }) => steers)) this.#append(notes, true);
    this.#reach("appended", step);
    this.#compact(step);
    this.#reach("compacted", step);
    this.#ask();
    this.#reach("asked", step);
    this.#commit(step);
    this.#reach("committed", step);
  }

  #reach(point: Point, { crash, cancel }: Step): void {
    if (crash === point) throw new Crash();
    if (cancel === point && this.#running) throw new Cancelled();
  }

  /** The first message in the queue, together with others that may steer. */
  #claim(): void {
    const [first, ...others] = this.#queue.splice(0);
    if (first === undefined) return;
    this.#turn += 1;
    this.#running = true;
    const joins = (input: Input) => first.steers && input.steers;
    for (const { parts, from } of [first, ...others.filter(joins)]) this.#write("user", parts, from);
    this.#queue.push(...others.filter((input) => !joins(input)));
    this.#catchUp();
    this.#begin();
  }

  /** What a turn runs with: the currently known tools and the fixed prefix. */
  #begin(): void {
    this.#toolbox = toolboxes[this.#turn % 2] ?? this.#toolbox;
    const kept = mayRenew(this.#view, Date.parse(at)) ? null : this.#keptPrefix;
    this.#prefix = kept ?? this.#freshPrefix();
  }

  #freshPrefix(): Prefix {
    return prefixOf("You are kind.", this.#toolbox.shown(calledNames(this.#view.messages)), {});
  }

  /** False: the turn waits for somebody and is parked. Settled results stay settled. */
  #runTools(step: Step): boolean {
    let waits = false;
    for (const [index, each] of this.#open.entries()) {
      if (each.result !== null) continue;
      const end = step.calls[index % Math.max(1, step.calls.length)] ?? "done";
      if (end === "waits") waits = true;
      else each.result = resultOf(each.call, end, step.results[index % Math.max(1, step.results.length)] ?? "ok");
    }
    if (waits) return false;
    this.#pending = this.#open.flatMap(({ result }) => (result === null ? [] : [this.#asHooksSay(result)]));
    this.#took = true;
    return true;
  }

  #asHooksSay(result: ToolResult): ToolResult {
    return this.#toRewrite.has(result.id) ? { ...result, content: `rewritten ${result.id}` } : result;
  }

  /** Results, then notes, then joining input, in one commit. */
  #append(notes: Part[][], absorb: boolean): void {
    this.#deliver();
    for (const parts of notes) this.#write("user", parts);
    if (absorb) {
      const joining = this.#queue.filter(({ steers }) => steers);
      const staying = this.#queue.filter(({ steers }) => !steers);
      this.#queue.splice(0, this.#queue.length, ...staying);
      for (const { parts, from } of joining) this.#write("user", parts, from);
    }
    this.#catchUp();
  }

  /** The results that the leader has seen, as the message after their calls. */
  #deliver(): void {
    if (this.#pending.length > 0) this.#write("tool", this.#pending);
    this.#pending = [];
    this.#open = [];
    this.#took = false;
  }

  #compact({ compaction, contexts }: Step): void {
    if (compaction === null) return;
    const plan = planCompaction({
      ...compaction,
      record: this.#view.record,
      messages: this.#shownToModel(),
      turnId: this.#turnId,
    });
    const next =
      plan === null ? null : nextRecord(this.#view.record, plan, plan.form === null ? null : "What was said.");
    if (next === null) return;
    this.#record = next;
    // The durable event has its own position.
    this.#seq += 1;
    applyRecord(this.#view, next);
    this.#keptPrefix = null;
    this.#prefix = this.#freshPrefix();
    if (contexts.length > 0) this.#append(contexts.map(textNote), false);
  }

  #ask(): void {
    const shown = viewMessages(this.#view.record, this.#shownToModel());
    const prompt = buildPrompt(this.#textOnly ? withoutToolTraffic(shown, this.#turnId) : shown, headings);
    const era = [this.#record?.version ?? 0, this.#readings, this.#textOnly ? this.#turn : ""].join();
    const prefix = JSON.stringify(this.#prefix);
    this.requests.push({ prefix, prompt, era, turnId: this.#turnId, paused: this.#paused });
  }

  #commit(step: Step): void {
    const { stopReason, calls } = step.reply;
    const made = calls.map((each): ToolCall => {
      this.#callCount += 1;
      return { type: "tool_call", id: `call-${this.#callCount}`, ...each };
    });
    for (const call of made) this.written.set(call.id, call);
    // A hook's rewrite depends on the call alone: a second run returns the same.
    if (step.rewritten) for (const { id } of made) this.#toRewrite.add(id);
    const messages = this.#turnMessages();
    const rounds = roundsOf(messages);
    const decision = nextAction(
      {
        parts: unwrapCalls([...step.reply.parts, ...made], (name) => this.#toolbox.nameOf(name) === "tool_call"),
        stopReason,
        rawStopReason: stopReason,
        usage: noUsage,
        model: "m",
      },
      {
        ...this.#around,
        sentTexts: sentTexts(messages, (name) => name === "message"),
        rounds,
        before: unfinishedText(messages),
        canCompact: true,
        isDue: true,
      },
    );
    this.#keptPrefix = this.#prefix;
    this.#deliver();
    this.#write("assistant", [...decision.parts, { type: "finish", reason: stopReason, at }]);
    this.#paused = false;
    if (decision.next === "tools") {
      this.#open = decision.calls.map((call) => ({ call, result: null }));
    } else if (decision.next === "again") {
      if (decision.note.length > 0) this.#write("user", decision.note);
      else this.#paused = true;
    } else if (step.stopHook && decision.finish.exitReason === "end_turn" && rounds.withoutTools < 3) {
      this.#write("user", note("stopHook", "not yet."));
    } else {
      this.#running = false;
      this.#seq += 1;
    }
    this.#catchUp();
  }

  /** Like the store ends a turn: open calls get a result, and the streamed part of an interrupted answer is kept. */
  #end(unsettled: string, shown: string): void {
    const results = this.#open.map(({ call, result }) => result ?? resultOf(call, "failed", unsettled));
    const said = new Map(this.#pending.map((result) => [result.id, result]));
    // If a turn is stopped before its new leader has run the hooks, the original tool output stays. What the previous
    // leader sent of it in an uncommitted request does not count.
    const unheard = results.some(({ id }) => this.#toRewrite.has(id) && !said.has(id));
    if (unheard) this.#readings += 1;
    if (results.length > 0)
      this.#write(
        "tool",
        results.map((result) => said.get(result.id) ?? result),
      );
    if (shown !== "" && this.#requestsOf(this.#turnId) > 0) {
      this.#keptPrefix = this.#prefix;
      this.#write("assistant", [
        { type: "text", text: shown },
        { type: "finish", reason: "cancelled", at },
      ]);
    }
    this.#open = [];
    this.#pending = [];
    this.#took = false;
    this.#running = false;
    this.#paused = false;
    this.#seq += 1;
    this.#catchUp();
  }

  #requestsOf(turnId: string): number {
    return this.requests.filter((request) => request.turnId === turnId).length;
  }

  /** A new leader: only the content of the store remains. */
  #readBack(count: number | null): void {
    this.#pending = [];
    this.#took = false;
    this.#view = emptyView();
    this.#view.record = this.#record;
    const stored = JSON.parse(JSON.stringify(this.#log)) as Message[];
    const { fromSeq, keepFirstTo } = this.#record ?? { fromSeq: 0, keepFirstTo: 0 };
    const newest = stored.filter(({ seq }) => seq >= fromSeq);
    const read = count === null ? newest : newest.slice(-Math.max(1, count));
    const partly = read.length < newest.length;
    if (partly || this.#partly) this.#readings += 1;
    this.#partly = partly;
    appendMessages(this.#view, read, this.#seq);
    const head = stored.filter(({ seq }) => seq <= keepFirstTo && seq < (read[0]?.seq ?? Number.POSITIVE_INFINITY));
    prepend(this.#view, head);
    this.#begin();
  }

  #write(role: Message["role"], parts: Part[], from?: Sender): void {
    this.#seq += 1;
    const message = { seq: this.#seq, role, turnId: this.#turnId, parts, model: null, createdAt: at };
    this.#log.push(from === undefined ? message : { ...message, from });
  }

  /** The leader applies the events of its own writes. */
  #catchUp(): void {
    const known = this.#view.messages.at(-1)?.seq ?? 0;
    let first = this.#log.length;
    while (first > 0 && (this.#log[first - 1]?.seq ?? 0) > known) first -= 1;
    const added = this.#log.slice(first);
    // As in a leader, positions of events other than messages may be unknown.
    appendMessages(this.#view, added, added.at(-1)?.seq ?? this.#view.seq);
  }

  #shownToModel(): Message[] {
    if (this.#pending.length === 0) return [...this.#view.messages];
    const { seq } = this.#view;
    const pending: Message = {
      seq: seq + 1,
      role: "tool",
      turnId: this.#turnId,
      parts: this.#pending,
      model: null,
      createdAt: "",
    };
    return [...this.#view.messages, pending];
  }

  #turnMessages(): Message[] {
    return this.#shownToModel().filter(({ turnId }) => turnId === this.#turnId);
  }

  get #turnId(): string {
    return `turn-${this.#turn}`;
  }
}

function textNote(text: string): Part[] {
  return [{ type: "text", text }];
}

function resultOf(call: ToolCall, end: Exclude<CallEnd, "waits">, text: string): ToolResult {
  const content = end === "lost" ? "Outcome unknown: check before you repeat it." : text;
  return { type: "tool_result", id: call.id, name: call.name, content, isError: end !== "done" };
}
