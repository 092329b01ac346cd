// The dependencies of tool calls: the tools and their resources, the store, and the timings of this replica.
import { toolAliveIntervalMs, type ToolCallRequest, type ToolProgress } from "@parley/contracts";
import { type FairSemaphore } from "@parley/kit";
import type { AttachmentStore } from "../tool/attachments.ts";
import type { Checkpoint } from "../snapshots/recorder.ts";
import type { Documents } from "../documents/documents.ts";
import type { Registry } from "../tool/registry.ts";
import type { Searcher } from "../search/search.ts";
import type { Workspace } from "../workspace/workspace.ts";
import type { Workspaces } from "../workspace/workspaces.ts";
import type { RunnerId } from "../tool/claim-decision.ts";
import type { EpochGate } from "./epoch.ts";
import type { CallAnswer } from "./outcomes.ts";
import type { PersonPrompt, SamplingClient } from "../tool/requests.ts";
import type { PendingQuestion } from "./ask-person.ts";
import type { StepClient } from "./step-client.ts";

export interface CallTimes {
  aliveMs: number;
  /** Minimum interval between progress messages. */
  progressMs: number;
  /** Interval between polls of a call that another runner has claimed. */
  pollMs: number;
  /** How long to wait for another runner's `idempotent` call before running it again. */
  patienceMs: number;
  /** How long a tool may take to end after it was aborted. */
  stopMs: number;
  /** How long settlement is retried while the store does not respond. */
  settleMs: number;
  /** How long a cancellation is stored for a call that has not arrived here. */
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

/** A call with its grant. */
export type GrantedCall = ToolCallRequest & { grant: string };

export interface CallDependencies {
  registry: Registry;
  workspaces: Pick<Workspaces, "take">;
  documents: ((request: GrantedCall) => Documents) | null;
  attachmentStore?: (request: GrantedCall) => AttachmentStore;
  searcher: Searcher;
  /** The checkpoint of the user's turn that a call belongs to; only the owner's workspaces have checkpoints. */
  checkpoint: (request: GrantedCall, workspace: Workspace, signal: AbortSignal) => Checkpoint;
  steps: StepClient;
  epochs: EpochGate;
  line: FairSemaphore;
  me: RunnerId;
  times: CallTimes;
  /** Sends a heartbeat for a call; `asks`: the call is waiting for a person. */
  alive: (turnId: string, n: number, asks: boolean) => void;
  /** Publishes the progress of a call. */
  progress?: (request: ToolCallRequest, progress: ToolProgress) => void;
  /** The principal of a call's turn, for tools that ask questions; see `createPersonPrompt`. */
  askPerson?: (request: GrantedCall, asking: PendingQuestion, claim: string) => PersonPrompt;
  /** Requests model answers on behalf of a call. */
  sampler?: (request: ToolCallRequest) => SamplingClient;
  faultPoint: (name: string) => void;
  /** A tool threw: a bug. */
  onBug: (error: unknown, request: ToolCallRequest) => void;
  onEnd: (request: ToolCallRequest, answer: CallAnswer, durationMs: number) => void;
}
