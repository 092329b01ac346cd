// How much a model holds: what the settings say, else what its provider says, else a table, else a cautious guess that is said
// once.
import type { ModelsSettings } from "@parley/contracts";
import { knownWindow } from "./known-models.ts";
import type { ModelProvider, ModelSize } from "./provider.ts";
import { Refreshing, refreshingTimes, type RefreshingTimes } from "./refreshing.ts";

export interface ContextWindow {
  /** Tokens of prompt and answer together. */
  tokens: number;
  source: "settings" | "provider" | "table" | "default";
}

/** Where nobody knows: what a server of one's own holds at least, with tools in the prompt, to be of use. */
const defaultTokens = 32_000;

export interface WindowOptions {
  known: ModelsSettings["known"];
  /** Told once for each model about which nothing is known. */
  warn: (message: string) => void;
  times?: RefreshingTimes;
  now?: () => number;
}

export class ContextWindows {
  readonly #options: WindowOptions;
  readonly #sizes = new Map<string, Refreshing<ModelSize>>();
  readonly #warned = new Set<string>();

  constructor(options: WindowOptions) {
    this.#options = options;
  }

  /** Waits a bounded time at its first use, and afterwards never. */
  async of(provider: ModelProvider): Promise<ContextWindow> {
    const { model } = provider;
    const configured = this.#options.known[model]?.context_window;
    if (configured !== undefined) return { tokens: configured, source: "settings" };
    const size = await this.#sizeOf(provider).get();
    if (typeof size?.contextTokens === "number") return { tokens: size.contextTokens, source: "provider" };
    const listed = provider.priceList === "official" ? knownWindow(model) : undefined;
    if (listed !== undefined) return { tokens: listed, source: "table" };
    this.#warn(model);
    return { tokens: defaultTokens, source: "default" };
  }

  /** After a prompt that was too long for the model: its size is asked for again. */
  invalidate(provider: ModelProvider): void {
    this.#sizes.get(keyOf(provider))?.invalidate();
  }

  #sizeOf(provider: ModelProvider): Refreshing<ModelSize> {
    const key = keyOf(provider);
    let size = this.#sizes.get(key);
    if (size === undefined) {
      const { times = refreshingTimes, now } = this.#options;
      size = new Refreshing((signal) => provider.size(signal), times, now);
      this.#sizes.set(key, size);
    }
    return size;
  }

  #warn(model: string): void {
    if (this.#warned.has(model)) return;
    this.#warned.add(model);
    this.#options.warn(
      `nobody says how much ${model} holds; ${defaultTokens} tokens are assumed. Set models.known."${model}".context_window`,
    );
  }
}

function keyOf({ name, model }: ModelProvider): string {
  return `${name}:${model}`;
}
