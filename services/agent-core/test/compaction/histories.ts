// Generates histories as left by crashes, cancellations, steering and cuts, and checks prompts against the rules of the model's API.
import type { Message, Part, Sender } from "@parley/contracts";
import fc from "fast-check";
import type { PromptMessage } from "../../src/model/provider.ts";

const person: Sender = {
  channel: "telegram",
  account: "main",
  conversation: "1",
  contact: { id: "1" },
  role: "owner",
  origin: "user",
};

/** A log under construction: positions increase, with gaps for durable events. */
export class Log {
  readonly messages: Message[] = [];
  #seq = 0;
  #calls = 0;

  add(role: Message["role"], turn: number, parts: Part[], said: { by?: Sender; gap?: number } = {}): Message {
    this.#seq += 1 + (said.gap ?? 0);
    const message: Message = {
      seq: this.#seq,
      role,
      turnId: `turn-${turn}`,
      parts,
      model: null,
      ...(said.by === undefined ? {} : { from: said.by }),
      createdAt: "2026-01-01T00:00:00.000Z",
    };
    this.messages.push(message);
    return message;
  }

  asks(turn: number, text: string): Message {
    return this.add("user", turn, [{ type: "text", text }], { by: person });
  }

  answers(turn: number, text: string): Message {
    return this.add("assistant", turn, [{ type: "text", text }, finish]);
  }

  /** A call and its result. */
  uses(turn: number, content: string, name = "read"): void {
    const id = this.callId();
    this.add("assistant", turn, [{ type: "tool_call", id, name, input: "{}" }, finish]);
    this.add("tool", turn, [{ type: "tool_result", id, name, content, isError: false }]);
  }

  callId(): string {
    this.#calls += 1;
    return `call-${this.#calls}`;
  }
}

export const finish: Part = { type: "finish", reason: "end_turn", at: "2026-01-01T00:00:00.000Z" };

/** Text sizes from a word to several windows. */
const size = fc.noBias(
  fc.oneof(
    { weight: 4, arbitrary: fc.integer({ min: 1, max: 300 }) },
    { weight: 5, arbitrary: fc.integer({ min: 300, max: 6_000 }) },
    { weight: 1, arbitrary: fc.integer({ min: 6_000, max: 30_000 }) },
  ),
);

const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("ask" as const), size, gap: fc.integer({ min: 0, max: 2 }) }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant("steer" as const), size, blank: fc.boolean(), noted: fc.boolean() }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("model" as const),
      size,
      says: fc.boolean(),
      thinks: fc.boolean(),
      resultSizes: fc.array(size, { maxLength: 3 }),
      /** The calls that the tool message answers; indexes beyond the list mean calls that do not exist. */
      answered: fc.option(fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 4 }), { freq: 3 }),
      lost: fc.integer({ min: 0, max: 5 }),
    }),
  },
);

function filler(word: string, length: number): string {
  return `${word} ${"x".repeat(length)}`;
}

/** A log whose beginning may be missing, as in a leader's view. */
export const histories: fc.Arbitrary<Message[]> = fc
  .record({ steps: fc.array(step, { maxLength: 20, size: "max" }), cut: fc.integer({ min: 0, max: 4 }) })
  .map(({ steps, cut }) => {
    const log = new Log();
    let turn = 0;
    for (const [index, each] of steps.entries()) {
      if (each.kind === "ask") {
        turn += 1;
        log.add("user", turn, [{ type: "text", text: filler(`request-${index}`, each.size) }], {
          by: person,
          gap: each.gap,
        });
      } else if (each.kind === "steer") {
        const text = each.blank ? " " : filler(`steered-${index}`, each.size);
        log.add("user", turn, [{ type: "text", text }], each.noted ? {} : { by: person });
      } else {
        const ids = each.resultSizes.map(() => log.callId());
        log.add("assistant", turn, [
          ...(each.thinks ? [{ type: "reasoning" as const, text: "hm", signature: "s" }] : []),
          ...(each.says ? [{ type: "text" as const, text: filler("answer", each.size) }] : []),
          ...ids.map((id): Part => ({ type: "tool_call", id, name: "read", input: "{}" })),
          finish,
        ]);
        if (ids.length === 0 || each.lost === 0) continue;
        const indices = each.answered ?? ids.map((_, call) => call);
        const results = indices.map((call): Part => ({
          type: "tool_result",
          id: ids[call] ?? `stranger-${call}`,
          name: "read",
          content: filler("result", each.resultSizes[call] ?? 1),
          isError: false,
        }));
        if (results.length > 0) log.add("tool", turn, results);
      }
    }
    return log.messages.slice(cut);
  });

/** The problem that the API would report; undefined if the prompt is valid. */
export function illegal(prompt: readonly PromptMessage[]): string | undefined {
  let open: string[] = [];
  for (const [index, message] of prompt.entries()) {
    if (message.role !== (index % 2 === 0 ? "user" : "assistant")) return `message ${index} is of ${message.role}`;
    if (message.parts.length === 0) return `message ${index} is empty`;
    const results = message.parts.flatMap((part) => (part.type === "tool_result" ? [part.id] : []));
    if (message.role === "user") {
      if (results.join() !== open.join())
        return `message ${index} answers [${results.join()}] where [${open.join()}] are open`;
      const firstOther = message.parts.findIndex((part) => part.type !== "tool_result");
      if (firstOther >= 0 && firstOther < results.length) return `message ${index} has text before results`;
      open = [];
    } else {
      if (results.length > 0) return `message ${index} of the assistant holds results`;
      open = message.parts.flatMap((part) => (part.type === "tool_call" ? [part.id] : []));
    }
    if (message.parts.some((part) => part.type === "finish")) return `message ${index} holds a finish marker`;
    if (message.parts.some((part) => part.type === "text" && part.text.trim() === ""))
      return `message ${index} holds a text of white space`;
  }
  return open.length > 0 ? `calls ${open.join()} are never answered` : undefined;
}
