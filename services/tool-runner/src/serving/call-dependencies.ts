// What calls are given to live by: the tools and what these work on, the store, and the times of this replica.
import { toolAliveIntervalMs, type ToolCallRequest, type ToolProgress } from "@parley/contracts";
import type { KeptContents } from "../attachments.ts";
import type { Checkpoint } from "../checkpoints/keeper.ts";
import type { Documents } from "../documents/documents.ts";
import type { Registry } from "../registry.ts";
import type { Searcher } from "../search/search.ts";
import type { TextWorker } from "../text/text-worker.ts";
import type { Workspaces } from "../workspace/workspaces.ts";
import type { RunnerId } from "./claims.ts";
import type { EpochGate } from "./epoch.ts";
import type { CallAnswer } from "./outcomes.ts";
import type { Asking, Person } from "./person.ts";
import type { Sampler } from "./sampler.ts";
import type { Steps } from "./steps.ts";
import type { WaitingLine } from "./waiting-line.ts";

export interface CallTimes {
  aliveMs: number;
  /** Least time between two signs of progress. */
  progressMs: number;
  /** Pause between looks at a call that another runner has. */
  pollMs: number;
  /** How long another runner may be silent about an `idempotent` call before it is run again. */
  patienceMs: number;
  /** How long a tool may take to end after it was told to. */
  stopMs: number;
  /** How long a result is offered to a store that does not answer. */
  settleMs: number;
  /** How long a cancellation is remembered for a call that is not here. */
  rememberMs: number;
}

export const callTimes: CallTimes = {
  aliveMs: toolAliveIntervalMs,
  progressMs: 1_000,
  pollMs: 500,
  patienceMs: 3 * toolAliveIntervalMs,
  stopMs: 10_000,
  settleMs: 600_000,
  rememberMs: 60_000,
};

/** A call with its rights. */
export type GrantedCall = ToolCallRequest & { grant: string };

export interface CallDependencies {
  registry: Registry;
  workspaces: Pick<Workspaces, "take">;
  documents: ((request: GrantedCall) => Documents) | null;
  contents?: (request: GrantedCall) => KeptContents;
  searcher: Searcher;
  textWorker: TextWorker;
  /** The checkpoint of the user's turn that a call belongs to; only the main workspace has them. */
  checkpoint: (request: GrantedCall, signal: AbortSignal) => Checkpoint;
  steps: Steps;
  epochs: EpochGate;
  line: WaitingLine;
  me: RunnerId;
  times: CallTimes;
  /** Says that a call is alive; `asks`: that it waits for a person. */
  alive: (turnId: string, n: number, asks: boolean) => void;
  /** Shows how far a call has come. */
  progress?: (request: ToolCallRequest, progress: ToolProgress) => void;
  /** The person of a call's turn, for tools that may ask; see `personOf`. */
  person?: (request: GrantedCall, asking: Asking, claim: string) => Person;
  /** Has a model answer for a call. */
  sampler?: (request: ToolCallRequest) => Sampler;
  faultPoint: (name: string) => void;
  /** A tool threw: a bug. */
  onBug: (error: unknown, request: ToolCallRequest) => void;
  onEnd: (request: ToolCallRequest, answer: CallAnswer, durationMs: number) => void;
}
