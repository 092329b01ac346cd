// The models that can be asked, each made once and kept: the agent's own, those it falls back to, and whichever a session, a
// profile or a summary names while it runs. What they hold and cost is asked here, too.
import type { ModelsSettings, Usage } from "@parley/contracts";
import { createAnthropic } from "./anthropic.ts";
import { Breaker } from "./breaker.ts";
import type { Contents } from "./contents.ts";
import { TurnModel, type Candidate } from "./failover.ts";
import { findAccess, type ModelAccess } from "./model-access.ts";
import { fullName, type ModelName } from "./model-name.ts";
import { createOpenAi } from "./openai.ts";
import { costOf, type PricedModel } from "./prices.ts";
import type { Failover, ModelProvider } from "./provider.ts";
import { createRehearsal } from "./rehearsal.ts";
import { showingAttachments } from "./showing.ts";
import { ContextWindows, type ContextWindow } from "./window.ts";

/** A model that cannot be asked; the message says what is missing. */
export class ModelUnavailable extends Error {
  override readonly name = "ModelUnavailable";
}

export interface RegistryOptions {
  access: ModelAccess;
  /** The agent's own model; it must be one that can be asked. */
  main: string;
  settings: ModelsSettings;
  /** Where a request does not say. */
  thinking: "off" | "adaptive";
  /** Told what people should know, once. */
  warn: (message: string) => void;
  /** In place of the agent's own model. */
  provider?: ModelProvider | undefined;
  /** Where attachments are fetched from; left out: they are only named. */
  contents?: Contents | undefined;
}

export interface TurnModelChoice {
  /** Default: the agent's own. */
  model?: string | undefined;
  /** A person has chosen this model: no other answers in its place. */
  pinned?: boolean | undefined;
  onFailover: (failover: Failover) => void;
}

export class ModelRegistry {
  /** The agent's own model. */
  readonly main: ModelProvider;
  readonly #options: RegistryOptions;
  readonly #windows: ContextWindows;
  readonly #candidates = new Map<string, Candidate>();

  constructor(options: RegistryOptions) {
    this.#options = options;
    this.#windows = new ContextWindows({ known: options.settings.known, warn: options.warn });
    this.main = this.modelFor(options.main);
  }

  /** A model by its name (`anthropic:x`, `openai:x`, `rehearsal`). Throws ModelUnavailable. */
  modelFor(name: string): ModelProvider {
    return this.#candidateFor(name).provider;
  }

  /** The one spelling of a model's name (`claude-x` → `anthropic:claude-x`). Throws ModelUnavailable. */
  fullName(name: string): string {
    return this.#candidateFor(name).fullName;
  }

  /** A model for one turn, with those that take over from it. Throws ModelUnavailable. */
  turnModel({ model, pinned = false, onFailover }: TurnModelChoice): TurnModel {
    const first = this.#candidateFor(model ?? this.#options.main);
    const { fallback, fallback_after: fallbackAfter } = this.#options.settings;
    // A fallback whose key is missing was told at the start.
    const rest = fallback
      .filter((name) => !pinned && "model" in findAccess(name, this.#options.access))
      .map((name) => this.#candidateFor(name))
      .filter((candidate) => candidate !== first);
    return new TurnModel(first, rest, { fallbackAfter, onFailover });
  }

  /** How much a model holds. Waits two seconds at most, and only at its first use. */
  windowOf(provider: ModelProvider): Promise<ContextWindow> {
    return this.#windows.of(asked(provider));
  }

  /** After a prompt that was too long: the model's size is asked for again. */
  invalidateWindow(provider: ModelProvider): void {
    this.#windows.invalidate(asked(provider));
  }

  /** Millionths of a US dollar; null: not known. `at`: epoch milliseconds. */
  costOf(model: PricedModel, usage: Usage | null, at: number): number | null {
    return costOf(model, usage, at, this.#options.settings.known);
  }

  #candidateFor(name: string): Candidate {
    const found = findAccess(name, this.#options.access);
    if ("problem" in found) throw new ModelUnavailable(found.problem);
    const full = fullName(found.model);
    let candidate = this.#candidates.get(full);
    if (candidate === undefined) {
      const isMain = this.#candidates.size === 0;
      const provider = (isMain ? this.#options.provider : undefined) ?? this.#create(found.model);
      const { contents } = this.#options;
      const seeing = contents === undefined ? provider : showingAttachments(provider, contents);
      candidate = { fullName: full, provider: seeing, breaker: new Breaker() };
      this.#candidates.set(full, candidate);
    }
    return candidate;
  }

  #create({ provider, model }: ModelName): ModelProvider {
    const { access, settings, thinking } = this.#options;
    if (provider === "anthropic" && access.anthropic !== null) {
      const { thinking_display: display, input_examples: examples } = settings;
      return createAnthropic({
        ...access.anthropic,
        model,
        thinking,
        display,
        examples: examples ?? access.anthropic.baseUrl === undefined,
      });
    }
    if (provider === "openai" && access.openai !== null) return createOpenAi({ ...access.openai, model });
    return createRehearsal(fullName({ provider: "rehearsal", model }));
  }
}

/** The model behind a turn's: what is remembered of it outlives the turn. */
function asked(provider: ModelProvider): ModelProvider {
  return provider instanceof TurnModel ? provider.current : provider;
}
