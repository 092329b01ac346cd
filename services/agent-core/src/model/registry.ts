// All models in use, each created once: the agent's own, its fallbacks, and models that a session, a profile or the
// compaction names at runtime. Also provides their sizes and costs.
import type { ModelsSettings, Usage } from "@parley/contracts";
import { createAnthropicOnDemand } from "./anthropic/on-demand.ts";
import { CircuitBreaker } from "./circuit-breaker.ts";
import type { Contents } from "./attachment-contents.ts";
import { TurnModel, type Candidate } from "./failover.ts";
import { findAccess, fullName, type ModelAccess, type ModelName } from "./model-access.ts";
import { createOpenAi } from "./openai/openai.ts";
import { costOf, type PricedModel } from "./prices.ts";
import type { Failover, ModelProvider } from "./provider.ts";
import { createResponses } from "./responses/responses.ts";
import { createRehearsal } from "./rehearsal/rehearsal.ts";
import { withAttachments } from "./with-attachments.ts";
import { ContextWindows, type ContextWindow } from "./window.ts";

/** A model without access; the message names what is missing. */
export class ModelUnavailable extends Error {
  override readonly name = "ModelUnavailable";
}

export interface RegistryOptions {
  access: ModelAccess;
  /** The agent's own model; access to it must be configured. */
  main: string;
  settings: ModelsSettings;
  /** Used when a request does not specify it. */
  thinking: "off" | "adaptive";
  /** Receives each warning for people once. */
  warn: (message: string) => void;
  /** Replaces the agent's own model. */
  provider?: ModelProvider | undefined;
  /** Where attachments are fetched from; omitted: they are named only. */
  contents?: Contents | undefined;
  /** Wraps each model to measure it. */
  measure?: ((provider: ModelProvider) => ModelProvider) | undefined;
}

export interface TurnModelChoice {
  /** Default: the agent's own. */
  model?: string | undefined;
  /** A person chose this model: there is no failover to another one. */
  pinned?: boolean | undefined;
  /** Models that replace it when it fails. Default: those of the settings, unless it is pinned. */
  fallbacks?: readonly string[] | undefined;
  onFailover: (failover: Failover) => void;
}

export interface ChoiceObserver {
  onFailover?(failover: Failover): void;
  /** The wanted model is unavailable; the agent's own model answers. */
  onUnavailable?(error: ModelUnavailable): void;
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

  /** The main model and the fallbacks that have a key. */
  get configured(): ModelProvider[] {
    return [this.main, ...this.#reachable(this.#options.settings.fallback).map(({ provider }) => provider)];
  }

  /** A model by its name (`anthropic:x`, `openai:x`, `rehearsal`). Throws ModelUnavailable. */
  modelFor(name: string): ModelProvider {
    return this.#candidateFor(name).provider;
  }

  /** The canonical name of a model (`claude-x` → `anthropic:claude-x`). Throws ModelUnavailable. */
  fullName(name: string): string {
    return this.#candidateFor(name).fullName;
  }

  /** A model for one turn, with its fallbacks. Throws ModelUnavailable. */
  turnModel({ model, pinned = false, fallbacks, onFailover }: TurnModelChoice): TurnModel {
    const first = this.#candidateFor(model ?? this.#options.main);
    const names = fallbacks ?? (pinned ? [] : this.#options.settings.fallback);
    const rest = this.#reachable(names).filter((candidate) => candidate !== first);
    return new TurnModel(first, rest, { fallbackAfter: this.#options.settings.fallback_after, onFailover });
  }

  /** A fallback without a key was reported at the start, or refused. */
  #reachable(names: readonly string[]): Candidate[] {
    return names
      .filter((name) => "model" in findAccess(name, this.#options.access))
      .map((name) => this.#candidateFor(name));
  }

  /** The wanted model with its fallbacks, or the agent's own when it is unavailable. */
  turnModelOrMain(
    {
      model,
      pinned,
      fallbacks,
    }: { model: string | undefined; pinned: boolean; fallbacks?: readonly string[] | undefined },
    observer: ChoiceObserver = {},
  ): TurnModel {
    const onFailover = (failover: Failover) => observer.onFailover?.(failover);
    try {
      return this.turnModel({ model, pinned, fallbacks, onFailover });
    } catch (error) {
      if (!(error instanceof ModelUnavailable)) throw error;
      observer.onUnavailable?.(error);
      return this.turnModel({ onFailover });
    }
  }

  /** The context window of a model. Waits up to two seconds, at its first use only. */
  windowOf(provider: ModelProvider): Promise<ContextWindow> {
    return this.#windows.of(currentProvider(provider));
  }

  /** After a prompt that was too long: requests the model's size again. */
  invalidateWindow(provider: ModelProvider): void {
    this.#windows.invalidate(currentProvider(provider));
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
      const { contents, measure } = this.#options;
      const measured = measure?.(provider) ?? provider;
      const seeing = contents === undefined ? measured : withAttachments(measured, contents);
      candidate = { fullName: full, provider: seeing, breaker: new CircuitBreaker() };
      this.#candidates.set(full, candidate);
    }
    return candidate;
  }

  #create({ provider, model }: ModelName): ModelProvider {
    const { access, settings, thinking } = this.#options;
    const { thinking_display: display, input_examples: examples } = settings;
    const server = access.named.get(provider);
    if (server?.api === "openai_responses") return createResponses({ ...server, model, name: provider });
    if (server?.api === "openai") return createOpenAi({ ...server, model, name: provider });
    if (server !== undefined) {
      const { apiKey = "", baseUrl, keyVariable } = server;
      const own = { apiKey, baseUrl, keyVariable, name: provider, examples: examples ?? false };
      return createAnthropicOnDemand({ ...own, model, thinking, display });
    }
    if (provider === "anthropic" && access.anthropic !== null) {
      return createAnthropicOnDemand({
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

/** The current model of a turn's chain: cached data about it outlives the turn. */
function currentProvider(provider: ModelProvider): ModelProvider {
  return provider instanceof TurnModel ? provider.current : provider;
}
