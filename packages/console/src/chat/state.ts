// What the chat shows of a session: the result of folding its events. Data only.
import type { Attachment, Cost, Sender, ToolProgress, Usage } from "@parley/contracts";

/** A part of an assistant message, in the order of the model. */
export type Block =
  | { type: "text"; text: string }
  | { type: "reasoning"; text: string }
  | { type: "tool"; callId: string };

export type Item =
  | {
      kind: "user";
      seq: number;
      turnId: string;
      text: string;
      files: readonly Attachment[];
      /** Omitted: the loop itself added the message. */
      from?: Sender;
      tainted: boolean;
      at: string;
    }
  | { kind: "assistant"; seq: number; turnId: string; blocks: readonly Block[]; model: string | null; at: string }
  | { kind: "end"; seq: number; turnId: string; exitReason: string; text: string; usage: Usage; cost: Cost }
  | { kind: "compacted"; seq: number; tokensBefore: number; tokensAfter: number; strategy: string };

export interface ToolView {
  callId: string;
  tool: string;
  /** JSON text of the arguments. */
  input: string;
  /** `requested`: not started, for example because it waits for an approval. */
  state: "requested" | "running" | "done" | "failed" | "denied";
  /** Null: no result yet. */
  output: string | null;
  /** When this page saw the start, in milliseconds since 1970; null: it did not. */
  startedAtMs: number | null;
  durationMs: number | null;
  isolation: string | null;
  progress: ToolProgress | null;
  /** The session of the sub-agent that the call started. */
  subagent: string | null;
  files: readonly Attachment[];
}

interface ApprovalView {
  approvalId: string;
  callId: string;
  tool: string;
  summary: string;
  reason: string;
  /** False: an approval covers this call only. */
  mayAlways: boolean;
  expiresAt: string;
  /** Null: pending. */
  decision: { allowed: boolean; by: string } | null;
}

interface QuestionView {
  callId: string;
  question: string;
  options: readonly string[];
  expiresAt: string;
}

/** The model call that is streaming. */
export interface LiveStep {
  turnId: string;
  step: number;
  attempt: number;
  text: string;
  reasoning: string;
  /** Tool calls whose arguments are being written; `input`: JSON text, usually cut off. */
  calls: readonly { callId: string; tool: string; input: string }[];
  /** What follows a part that was not received, by `text.delta`, `reasoning.delta` or the id of a call. */
  tails: ReadonlyMap<string, Tail>;
  /** There are tails; they are joined when the part before them is there, at the latest in the committed message. */
  hasGap: boolean;
}

/** Text behind a gap; `offset`: characters (UTF-16) before it. */
export interface Tail {
  offset: number;
  text: string;
}

/** The running turn. */
export interface RunningTurn {
  turnId: string;
  startedAtMs: number;
  /** What it does when it neither streams nor runs a tool: a retry, a compaction, waiting. */
  activity: string | null;
  notices: readonly string[];
}

export interface ChatState {
  /** The last durable event. */
  seq: number;
  items: readonly Item[];
  tools: ReadonlyMap<string, ToolView>;
  /** By call. */
  approvals: ReadonlyMap<string, ApprovalView>;
  /** By call; removed when the call has its result. */
  questions: ReadonlyMap<string, QuestionView>;
  live: LiveStep | null;
  turn: RunningTurn | null;
  /** The turn and its highest step whose message is committed: late deltas of it are dropped. */
  closed: { turnId: string; step: number } | null;
}

export const emptyChat: ChatState = {
  seq: 0,
  items: [],
  tools: new Map(),
  approvals: new Map(),
  questions: new Map(),
  live: null,
  turn: null,
  closed: null,
};
