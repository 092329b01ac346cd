// Dependencies of turns: those that all turns of a leader share, and the start values of one turn.
import type { Bus } from "@parley/bus";
import type { Logger } from "@parley/chassis";
import type { ClaimedTurn, Message, ParleySettings, SessionState } from "@parley/contracts";
import type { RetryTimes } from "../config.ts";
import type { RunHooks } from "../hooks/run-hooks.ts";
import type { SignGrant } from "../policy/grant-signer.ts";
import type { Memory } from "../memory/memory.ts";
import type { Audience } from "../prompt/documents.ts";
import type { ModelRegistry } from "../model/registry.ts";
import type { LeaderStore } from "../store-client/leader-store.ts";
import type { SamplingService } from "../sampling/service.ts";
import type { Transcriber } from "../voice/transcriber.ts";
import type { Budgets } from "../limits/budget.ts";
import type { TurnPolicy } from "../policy/turn-policy.ts";
import type { Prefix, Prefixes } from "../session/prefix.ts";
import type { TurnMetrics } from "../telemetry/telemetry.ts";
import type { Toolbox } from "../tools/toolbox.ts";
import type { Taint } from "../policy/taint.ts";
import type { SessionView } from "../session/view.ts";
import type { RunningCalls } from "./running-calls.ts";
import type { StreamingCalls } from "./streaming-calls.ts";

export interface TurnDeps {
  bus: Bus;
  log: Logger;
  leaderStore: LeaderStore;
  settings: ParleySettings;
  runHooks: RunHooks;
  model: ModelDeps;
  tools: ToolDeps;
  enrichment: EnrichmentDeps;
}

/** For model calls and their cost. */
interface ModelDeps {
  models: ModelRegistry;
  retry: RetryTimes;
  budgets: Budgets;
  prefixes: Prefixes;
  metrics: TurnMetrics;
  streaming: StreamingCalls;
}

/** For tool calls. */
export interface ToolDeps {
  /** Signs the rights of a call that a tool-runner runs. */
  signGrant: SignGrant;
  running: RunningCalls;
  /** Serves sampling requests of MCP servers during a call. */
  sampling: SamplingService;
  /** Counts evaluations of the permission rules for a tool call. */
  permissionEvaluated(decision: "allow" | "deny" | "ask"): void;
}

/** For what is added to people's input before the model reads it. */
interface EnrichmentDeps {
  memory: Memory;
  /** Transcribes recordings; null: disabled. */
  transcriber: Transcriber | null;
}

/** What a turn starts with, in addition to its claim. */
export interface TurnStart {
  claimed: ClaimedTurn;
  session: SessionState;
  view: SessionView;
  toolbox: Toolbox;
  prefix: Prefix;
  /** The session does not refer to this prefix yet. */
  newPrefix: boolean;
  /** Messages of the turn that the view does not contain, without what nobody reads of them. */
  earlier: readonly Message[];
  /** The taint of these messages. */
  hidden: Taint;
  /** Builds the prefix as of now. */
  assemble: (policy: TurnPolicy, audience: Audience) => Promise<Prefix>;
  /** Input that may join was waiting at the claim. */
  steerable: boolean;
  /** Document changes for the model; null: none. */
  news: string | null;
}
