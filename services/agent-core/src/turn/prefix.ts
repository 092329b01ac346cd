// What a session's model is sent before the conversation: the system prompt and the tools, fixed until a compaction, so that the
// provider's cache and the signatures of reasoning hold. Kept in the store by hash, shared by the sessions that have the same.
import { hash } from "node:crypto";
import type { Bus } from "@parley/bus";
import { store, type ToolDescriptor } from "@parley/contracts";
import { z } from "zod";
import { charsOfTools, tokensOf } from "../model/tokens.ts";
import type { View } from "./view.ts";

export interface Prefix {
  hash: string;
  system: string;
  /** Sorted by name. */
  tools: ShownTool[];
  /** Versions of the documents that the system prompt was made from. */
  told: Record<string, number>;
}

/** What a model is shown of a tool. */
type ShownTool = Pick<ToolDescriptor, "name" | "description" | "inputSchema" | "examples">;

const Content = z.object({
  system: z.string(),
  tools: z.array(
    z.object({
      name: z.string(),
      description: z.string(),
      inputSchema: z.record(z.string(), z.unknown()),
      examples: z.array(z.record(z.string(), z.unknown())).optional(),
    }),
  ),
  told: z.record(z.string(), z.number()),
});

/** Tools as a model is shown them, and what is derived from them; worked out once for each list of tools. */
interface Shown {
  tools: ShownTool[];
  /** For the hash. */
  json: string;
}

const shown = new WeakMap<readonly ToolDescriptor[], Shown>();
const weights = new WeakMap<readonly ShownTool[], number>();

function showTools(tools: readonly ToolDescriptor[]): Shown {
  let known = shown.get(tools);
  if (known === undefined) {
    const sorted = tools
      .map(({ name, description, inputSchema, examples, showExamples }) => ({
        name,
        description,
        inputSchema,
        ...(showExamples === true && examples !== undefined ? { examples } : {}),
      }))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
    known = { tools: sorted, json: JSON.stringify(sorted) };
    shown.set(tools, known);
  }
  return known;
}

/** Tokens of system prompt and tools, estimated. */
export function prefixTokens({ system, tools }: Prefix): number {
  let chars = weights.get(tools);
  if (chars === undefined) {
    chars = charsOfTools(tools);
    weights.set(tools, chars);
  }
  return tokensOf(system.length + chars);
}

/** How long a provider keeps a prompt at most; after it nothing is lost by a new one. Source: the API's longest cache, one hour. */
const coldMs = 60 * 60 * 1000;
const maxKnown = 200;
/** How long the store is sure to keep a prefix that it was told of and that no session uses. Its own limit is a day. */
const storedForMs = 60 * 60 * 1000;

export function prefixOf(system: string, tools: readonly ToolDescriptor[], told: Record<string, number>): Prefix {
  const { tools: sorted, json } = showTools(tools);
  return { hash: hash("sha256", `${JSON.stringify([system, told])}${json}`), system, tools: sorted, told };
}

/**
 * Whether a session may take a new prefix: nothing has been answered under the old one, or it has been idle until the cache is
 * cold and no reasoning is bound to it. Pure.
 */
export function mayRenew(view: View, now: number): boolean {
  const answers = view.messages.filter((message) => message.role === "assistant");
  if (answers.length === 0) return true;
  const lastAt = Date.parse(view.messages.at(-1)?.createdAt ?? "") || 0;
  const bound = answers.some((message) => message.parts.some((part) => part.type === "reasoning"));
  return !bound && now - lastAt > coldMs;
}

export class Prefixes {
  readonly #bus: Bus;
  readonly #known = new Map<string, Prefix>();
  /** When the store was told of each, by a monotonic clock. */
  readonly #storedAt = new Map<string, number>();

  constructor(bus: Bus) {
    this.#bus = bus;
  }

  /** The prefix a session was given; undefined when the store does not have it. */
  async load(hashed: string, timeoutMs: number): Promise<Prefix | undefined> {
    const known = this.#known.get(hashed);
    if (known !== undefined) return known;
    const { content } = await this.#bus.request(store.prefixGet, { hash: hashed }, { timeoutMs });
    if (content === null) return undefined;
    const prefix = { hash: hashed, ...Content.parse(JSON.parse(content)) };
    this.#remember(prefix);
    return prefix;
  }

  /** Makes sure that the store has it, before a commit names it. */
  async keep(prefix: Prefix, timeoutMs: number): Promise<void> {
    const storedAt = this.#storedAt.get(prefix.hash);
    if (storedAt !== undefined && performance.now() - storedAt < storedForMs) return;
    const content = JSON.stringify({ system: prefix.system, tools: prefix.tools, told: prefix.told });
    await this.#bus.request(store.prefixPut, { hash: prefix.hash, content }, { timeoutMs });
    this.#storedAt.set(prefix.hash, performance.now());
    this.#remember(prefix);
  }

  #remember(prefix: Prefix): void {
    this.#known.set(prefix.hash, prefix);
    const oldest = this.#known.keys().next();
    if (this.#known.size <= maxKnown || oldest.done === true) return;
    this.#known.delete(oldest.value);
    this.#storedAt.delete(oldest.value);
  }
}
