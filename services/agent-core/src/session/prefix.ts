// The system prompt and tools that a session's model receives before the conversation. They are fixed until a
// compaction, so that the provider's cache and reasoning signatures stay valid. The store keeps them by hash, shared
// between sessions.
import { hash } from "node:crypto";
import { store, type ToolDescriptor } from "@parley/contracts";
import { z } from "zod";
import { advertisedSchema } from "../model/advertised-schema.ts";
import { charsOfTools, tokensOf } from "../model/tokens.ts";
import type { LeaderStore } from "../store-client/leader-store.ts";
import type { SessionView } from "./view.ts";

export interface Prefix {
  hash: string;
  system: string;
  /** Sorted by name. */
  tools: ShownTool[];
  /** Versions of the documents in the system prompt. */
  told: Record<string, number>;
  /** Who may read the system prompt; undefined in prefixes of older versions. */
  audience?: "owner" | "others" | undefined;
}

/** The fields of a tool that a model receives. */
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
  audience: z.enum(["owner", "others"]).optional(),
});

/** Tools as a model receives them, with derived values; computed once per list of tools. */
interface Shown {
  tools: ShownTool[];
  /** Input of the hash. */
  json: string;
  /** The last hash and the rest of its input: most turns of an agent have the same prefix. */
  last?: { input: string; hash: string };
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
        inputSchema: advertisedSchema(inputSchema),
        ...(showExamples === true && examples !== undefined ? { examples } : {}),
      }))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
    known = { tools: sorted, json: JSON.stringify(sorted) };
    shown.set(tools, known);
  }
  return known;
}

/** Estimated tokens of system prompt and tools. */
export function prefixTokens({ system, tools }: Prefix): number {
  let chars = weights.get(tools);
  if (chars === undefined) {
    chars = charsOfTools(tools);
    weights.set(tools, chars);
  }
  return tokensOf(system.length + chars);
}

/**
 * The longest time a provider caches a prompt; after it a new prefix costs nothing extra. Source: the API's longest
 * cache, 1 h.
 */
const coldMs = 60 * 60 * 1000;
const maxKnown = 200;
/** How long the store certainly keeps a stored prefix that no session uses. Its own limit is a day. */
const storedForMs = 60 * 60 * 1000;

export function prefixOf(
  system: string,
  tools: readonly ToolDescriptor[],
  versions: Record<string, number>,
  audience?: Prefix["audience"],
): Prefix {
  const known = showTools(tools);
  const input = JSON.stringify([system, versions]);
  if (known.last?.input !== input) known.last = { input, hash: hash("sha256", `${input}${known.json}`) };
  return { hash: known.last.hash, system, tools: known.tools, told: versions, audience };
}

/**
 * Whether a session may take a new prefix: no answer exists under the old one, or the cache has expired and no
 * reasoning is bound to the old one. Pure.
 */
export function mayRenew(view: SessionView, now: number): boolean {
  const answers = view.messages.filter((message) => message.role === "assistant");
  if (answers.length === 0) return true;
  const lastAt = Date.parse(view.messages.at(-1)?.createdAt ?? "") || 0;
  const bound = answers.some((message) => message.parts.some((part) => part.type === "reasoning"));
  return !bound && now - lastAt > coldMs;
}

export class Prefixes {
  readonly #leaderStore: LeaderStore;
  readonly #known = new Map<string, Prefix>();
  /** When each prefix was stored, by a monotonic clock. */
  readonly #storedAt = new Map<string, number>();

  constructor(leaderStore: LeaderStore) {
    this.#leaderStore = leaderStore;
  }

  /** The prefix of this hash; undefined when the store does not have it. */
  async load(hashed: string): Promise<Prefix | undefined> {
    const known = this.#known.get(hashed);
    if (known !== undefined) return known;
    const { content } = await this.#leaderStore.request(store.prefixGet, { hash: hashed });
    if (content === null) return undefined;
    const prefix = { hash: hashed, ...Content.parse(JSON.parse(content)) };
    this.#remember(prefix);
    return prefix;
  }

  /** Ensures that the store has the prefix before a commit refers to it. */
  async keep(prefix: Prefix): Promise<void> {
    const storedAt = this.#storedAt.get(prefix.hash);
    if (storedAt !== undefined && performance.now() - storedAt < storedForMs) return;
    const { hash: _, ...fields } = prefix;
    const content = JSON.stringify(fields);
    await this.#leaderStore.request(store.prefixPut, { hash: prefix.hash, content });
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
