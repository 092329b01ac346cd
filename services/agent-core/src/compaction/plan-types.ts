// What a plan for compaction is made from, and what it says.
import type { CompactionSettings, Message, ViewRecord } from "@parley/contracts";
import type { CompactionCause, CompactionTrigger } from "./due.ts";
import type { Estimate } from "./estimate.ts";

export type CompactionStrategy = CompactionSettings["strategies"][number];

export interface PlanInput {
  /** The record in force; null: none was ever made. */
  record: ViewRecord | null;
  /**
   * The log, in order, at least what the record shows. Results that are not committed yet stand at its end under the position
   * after the last one.
   */
  messages: readonly Message[];
  settings: CompactionSettings;
  cause: CompactionCause;
  /** Tokens that messages may fill: the window without system prompt, tools and answer. */
  usableTokens: number;
  /** Tokens of system prompt and tools, for `trigger_tokens`; left out: 0. */
  overheadTokens?: number;
  /** The running turn; null between turns. */
  turnId: string | null;
  /** `idle`: how long nothing has happened, in milliseconds; left out: 0. */
  idleMs?: number;
  /** Left out: three characters a token. */
  estimate?: Estimate;
}

export interface Plan {
  /** Version of the record it replaces; 0 = none. */
  baseVersion: number;
  trigger: CompactionTrigger;
  strategy: CompactionStrategy;
  keepFirstTo: number;
  fromSeq: number;
  clearedBefore: number;
  maxResultChars?: number;
  lastRequest: string | null;
  /** Last position of the log it was made from. */
  atSeq: number;
  /** Messages that are no longer shown. */
  removed: number;
  /** `same_prefix`: `summaryRequest` behind the prompt as it is; `transcript`: `transcriptRequest`, alone; null: no summary. */
  form: "same_prefix" | "transcript" | null;
  /** Room for the summary in characters; 0 when there is none to write. */
  maxSummaryChars: number;
  /** Length of a transcript the model can read, in characters. */
  maxTranscriptChars: number;
  /** Tokens of the messages before, and after with a summary that fills its room. */
  tokensBefore: number;
  tokensAfter: number;
}
