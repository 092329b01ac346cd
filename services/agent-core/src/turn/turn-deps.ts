// What turns are run with: what all turns of a leader share, and what one is given beside its claim.
import type { Bus } from "@parley/bus";
import type { Logger } from "@parley/chassis";
import type { ClaimedTurn, ParleySettings, SessionState } from "@parley/contracts";
import type { RetryTimes } from "../config.ts";
import type { RunHooks } from "../hooks/run-hooks.ts";
import type { SignGrant } from "../leadership/grant-signer.ts";
import type { Memory } from "../memory/memory.ts";
import type { Audience } from "../prompt/documents.ts";
import type { ModelRegistry } from "../model/registry.ts";
import type { SamplingDesk } from "../sampling/desk.ts";
import type { Synthesizer } from "../speech/synthesizer.ts";
import type { Transcriber } from "../speech/transcriber.ts";
import type { Budgets } from "./budget.ts";
import type { Policy } from "./policy.ts";
import type { Prefix, Prefixes } from "./prefix.ts";
import type { Toolbox } from "./toolbox.ts";
import type { Heard } from "./trust.ts";
import type { View } from "./view.ts";

export interface TurnDeps {
  bus: Bus;
  log: Logger;
  epoch: number;
  /** Signs the rights of a call that a tool-runner carries out. */
  signGrant: SignGrant;
  /** How long the store may be away before a write is given up. */
  storeTimeoutMs: number;
  settings: ParleySettings;
  models: ModelRegistry;
  retry: RetryTimes;
  runHooks: RunHooks;
  budgets: Budgets;
  /** Where MCP servers get a model's answer during a call. */
  sampling: SamplingDesk;
  prefixes: Prefixes;
  memory: Memory;
  /** Who turns recordings into text; null: nobody. */
  transcriber: Transcriber | null;
  /** Who turns text into sound; null: nobody. */
  synthesizer: Synthesizer | null;
  /** Counts prompts that did not continue the one before them. */
  prefixBroken(): void;
}

/** What a turn is run with beside its claim. */
export interface TurnStart {
  claimed: ClaimedTurn;
  session: SessionState;
  view: View;
  toolbox: Toolbox;
  prefix: Prefix;
  /** The session does not name this prefix yet. */
  newPrefix: boolean;
  /** Of messages of the turn that the view does not show. */
  hidden: Heard;
  /** The prefix as it would be fixed now. */
  assemble: (policy: Policy, audience: Audience) => Promise<Prefix>;
  /** Input waits that may join, as the claim has said. */
  steerable: boolean;
  /** What the model has to be told before it goes on; null: nothing. */
  news: string | null;
}
