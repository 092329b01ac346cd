// Input and output types of compaction planning.
import type { CompactionSettings, Message, ViewRecord } from "@parley/contracts";
import type { CompactionCause, CompactionTrigger } from "./triggers.ts";
import type { Estimate } from "../model/tokens.ts";

export type CompactionStrategy = CompactionSettings["strategies"][number];

export interface PlanInput {
  /** The current view record; null before the first compaction. */
  record: ViewRecord | null;
  /**
   * The messages that requests contain, in order, at least those in the view. Uncommitted results are at their end, with the position
   * after the last committed message.
   */
  messages: readonly Message[];
  /** Position of the log's last message, if requests may not contain it. Default: that of the last of `messages`. */
  lastSeq?: number;
  settings: CompactionSettings;
  cause: CompactionCause;
  /** Tokens available to messages: the window without system prompt, tools and answer. */
  usableTokens: number;
  /** Tokens of system prompt and tools, for `trigger_tokens`. Default: 0. */
  overheadTokens?: number;
  /** The running turn; null between turns. */
  turnId: string | null;
  /** For `idle`: milliseconds since the last activity. Default: 0. */
  idleMs?: number;
  /** Default: three characters per token. */
  estimate?: Estimate;
}

export interface Plan {
  /** Version of the record that the plan replaces; 0 if none. */
  baseVersion: number;
  trigger: CompactionTrigger;
  strategy: CompactionStrategy;
  keepFirstTo: number;
  fromSeq: number;
  clearedBefore: number;
  maxResultChars?: number;
  lastRequest: string | null;
  /** Last position of the log when the plan was made. */
  atSeq: number;
  /** Number of messages that the plan removes from the view. */
  removed: number;
  /** `same_prefix`: append `summaryRequest` to the prompt; `transcript`: send `transcriptRequest` alone; null: no summary. */
  form: "same_prefix" | "transcript" | null;
  /** Maximum characters of the summary; 0 if there is none to write. */
  maxSummaryChars: number;
  /** Maximum characters of a transcript. */
  maxTranscriptChars: number;
  /** Tokens of the view before, and after with a summary of maximum length. */
  tokensBefore: number;
  tokensAfter: number;
}
