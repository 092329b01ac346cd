// Taint over the life of a session: for any compactions and takeovers, a turn is tainted exactly while its view contains content
// derived from tainted content.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Message, type Sender, ViewRecordSchema, type ViewRecord } from "@parley/contracts";
import fc from "fast-check";
import { nextRecord } from "../../src/compaction/next-record.ts";
import { planCompaction } from "../../src/compaction/plan.ts";
import { viewMessages } from "../../src/compaction/view-messages.ts";
import { withoutToolTraffic } from "../../src/prompt/build-prompt.ts";
import { showsTaint } from "../../src/policy/taint.ts";
import { owner, tool } from "../turn/support.ts";
import { Log } from "./histories.ts";

const descriptors = [tool("web_fetch", { effects: ["reads_untrusted"] }), tool("read", { effects: ["reads_files"] })];
const toolbox = {
  contained: true,
  find: (name: string) => {
    const descriptor = descriptors.find((each) => each.name === name);
    return descriptor === undefined ? undefined : { local: undefined, descriptor };
  },
};

const senders: Sender[] = [
  owner,
  { ...owner, role: "guest" },
  { ...owner, origin: "webhook" },
  { ...owner, forwarded: { from: "Mallory" } },
  { ...owner, origin: "subagent", tainted: true },
];

const steps = fc.array(
  fc.oneof(
    {
      weight: 3,
      arbitrary: fc.record({ kind: fc.constant("ask" as const), by: fc.constantFrom(...senders, owner, owner) }),
    },
    { weight: 3, arbitrary: fc.constant({ kind: "answer" as const }) },
    {
      weight: 3,
      arbitrary: fc.record({ kind: fc.constant("use" as const), name: fc.constantFrom("web_fetch", "read") }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("flagged" as const) }) },
    {
      weight: 3,
      arbitrary: fc.record({
        kind: fc.constant("compact" as const),
        strategy: fc.constantFrom("summarize" as const, "trim" as const, "clear_tool_results" as const),
        summary: fc.boolean(),
        running: fc.boolean(),
      }),
    },
    { weight: 1, arbitrary: fc.constant({ kind: "takeover" as const }) },
  ),
  { minLength: 5, maxLength: 40, size: "max" },
);

const compaction = {
  trigger_share: 0.2,
  trigger_tokens: 0,
  trigger_turns: 0,
  keep_first: 1,
  keep_last: 2,
  keep_last_turns: 0,
  keep_share: 0.1,
  append_last_request: true,
  memory_flush: false,
  idle_minutes: 0,
  max_messages: 0,
};

/** A session as its leader runs it, with a separate record of what is derived from tainted content. */
class Session {
  readonly log = new Log();
  messages: Message[] = this.log.messages;
  record: ViewRecord | null = null;
  readonly derived = new Set<Message>();
  recordDerived = false;
  turn = 0;

  get shown(): Message[] {
    return viewMessages(this.record, this.messages);
  }

  /** Whether a request made now contains derived content. */
  get isDerived(): boolean {
    const { record } = this;
    const visible = ({ seq }: Message) => record === null || seq <= record.keepFirstTo || seq >= record.fromSeq;
    return this.recordDerived || this.messages.some((message) => this.derived.has(message) && visible(message));
  }

  get isTainted(): boolean {
    return showsTaint(this.record, this.shown, toolbox);
  }

  /** The leader's messages in a tainted turn are marked; they are derived content if the request contained derived content. */
  write(add: () => void, source: boolean): void {
    const before = this.messages.length;
    const { isDerived } = this;
    add();
    const written = this.messages.slice(before);
    for (const message of written) if (isDerived || source) this.derived.add(message);
    if (!this.isTainted) return;
    for (const message of written) message.tainted = true;
  }

  compact({
    strategy,
    summary,
    running,
  }: {
    strategy: "summarize" | "trim" | "clear_tool_results";
    summary: boolean;
    running: boolean;
  }): void {
    const plan = planCompaction({
      record: this.record,
      messages: this.messages,
      settings: { ...compaction, strategies: [strategy] },
      cause: "overflow",
      usableTokens: 500,
      turnId: running ? (this.messages.at(-1)?.turnId ?? null) : null,
    });
    if (plan === null) return;
    const { isDerived } = this;
    const text = plan.form !== null && summary ? "s".repeat(50) : null;
    const next = nextRecord(this.record, plan, text, { tainted: this.isTainted });
    if (next === null) return;
    this.record = ViewRecordSchema.parse(JSON.parse(JSON.stringify(next)));
    this.recordDerived = isDerived;
  }
}

test("is tainted exactly when the request contains content derived from tainted content", () => {
  let tainted = 0;
  let compacted = 0;
  fc.assert(
    fc.property(steps, (sequence) => {
      const session = new Session();
      for (const step of sequence) {
        if (step.kind === "ask") {
          session.turn += 1;
          const message = session.log.asks(session.turn, "x".repeat(300));
          message.from = step.by;
          if (step.by !== owner) session.derived.add(message);
        } else if (step.kind === "answer") {
          session.write(() => session.log.answers(session.turn, "y".repeat(300)), false);
        } else if (step.kind === "use") {
          session.write(() => session.log.uses(session.turn, "z".repeat(300), step.name), step.name === "web_fetch");
        } else if (step.kind === "flagged") {
          session.write(() => {
            session.log.uses(session.turn, "z".repeat(300));
            for (const part of session.messages.at(-1)?.parts ?? [])
              if (part.type === "tool_result") part.untrusted = true;
          }, true);
        } else if (step.kind === "takeover") {
          // The next leader loads the messages of the view from the store.
          const { record } = session;
          session.messages.splice(
            0,
            session.messages.length,
            ...session.messages.filter(
              ({ seq }) => record === null || seq <= record.keepFirstTo || seq >= record.fromSeq,
            ),
          );
        } else {
          const before = session.record;
          session.compact(step);
          if (session.record !== before) compacted += 1;
        }
        assert.equal(session.isTainted, session.isDerived);
        if (session.isTainted) tainted += 1;
        const said = withoutToolTraffic(session.shown, `turn-${session.turn}`);
        assert.ok(
          !showsTaint(session.record, said, toolbox) || session.isDerived,
          "content outside the view does not taint",
        );
      }
    }),
    { numRuns: 300 },
  );
  assert.ok(
    tainted > 100 && compacted > 50,
    `${tainted} tainted steps and ${compacted} compactions: the test shows nothing`,
  );
});

test("keeps the taint of a record when the next one is made of untainted content", () => {
  const log = new Log();
  for (let turn = 1; turn <= 8; turn++) {
    log.asks(turn, "x".repeat(300));
    log.answers(turn, "y".repeat(300));
  }
  const input = { messages: log.messages, settings: { ...compaction, strategies: ["trim" as const] }, turnId: null };
  const first = planCompaction({ ...input, record: null, cause: "overflow", usableTokens: 800 });
  assert.ok(first !== null);
  const record = nextRecord(null, first, null, { tainted: true });
  assert.equal(record?.tainted, true);
  for (let turn = 9; turn <= 16; turn++) {
    log.asks(turn, "x".repeat(300));
    log.answers(turn, "y".repeat(300));
  }
  const second = planCompaction({ ...input, record, cause: "overflow", usableTokens: 800 });
  assert.ok(second !== null);
  assert.equal(nextRecord(record, second, null, { tainted: false })?.tainted, true);
});
