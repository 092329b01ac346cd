// The context window of a model: from the settings, else its provider, else a table, else a cautious default with a
// warning.
import type { ModelsSettings } from "@parley/contracts";
import { knownWindow } from "./known-models.ts";
import type { ModelProvider, ModelSize } from "./provider.ts";
import { CachedValue, cachedValueTimes, type CachedValueTimes } from "./cached-value.ts";

export interface ContextWindow {
  /** Tokens of prompt and answer together. */
  tokens: number;
  source: "settings" | "provider" | "table" | "default";
}

/** Default when nothing is known: the least with which a self-hosted server is useful with tools in the prompt. */
const defaultTokens = 32_000;

export interface WindowOptions {
  known: ModelsSettings["known"];
  /** Called once for each model without a known window. */
  warn: (message: string) => void;
  times?: CachedValueTimes;
  now?: () => number;
}

export class ContextWindows {
  readonly #options: WindowOptions;
  readonly #sizes = new Map<string, CachedValue<ModelSize>>();
  readonly #warned = new Set<string>();

  constructor(options: WindowOptions) {
    this.#options = options;
  }

  /** Waits for a bounded time at its first use, and never afterwards. */
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

  /** After a prompt that was too long: requests the model's size again. */
  invalidate(provider: ModelProvider): void {
    this.#sizes.get(keyOf(provider))?.invalidate();
  }

  #sizeOf(provider: ModelProvider): CachedValue<ModelSize> {
    const key = keyOf(provider);
    let size = this.#sizes.get(key);
    if (size === undefined) {
      const { times = cachedValueTimes, now } = this.#options;
      size = new CachedValue((signal) => provider.size(signal), times, now);
      this.#sizes.set(key, size);
    }
    return size;
  }

  #warn(model: string): void {
    if (this.#warned.has(model)) return;
    this.#warned.add(model);
    this.#options.warn(
      `context window of ${model} unknown: ${defaultTokens} tokens assumed. Set models.known."${model}".context_window`,
    );
  }
}

function keyOf({ name, model }: ModelProvider): string {
  return `${name}:${model}`;
}
