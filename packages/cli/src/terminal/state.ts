// What the terminal chat shows, as data: the entries of the transcript, the messages that wait, the open questions and the running turns.

import type { Cost } from "@parley/contracts";

/** How a message of a person came to the agent. */
type SaidBy = "you" | "voice" | "elsewhere";

export interface ToolEntry {
  readonly kind: "tool";
  readonly callId: string;
  readonly tool: string;
  /** JSON text of the arguments; may be truncated while the call runs. */
  readonly input: string;
  readonly state: "running" | "done" | "failed" | "denied";
  readonly durationMs: number | null;
  readonly output: string;
  /** The newest report of the running call; empty: none. */
  readonly progress: string;
  /** The isolation that the command ran under; null: no command, or unknown. */
  readonly isolation: string | null;
}

interface ApprovalDecision {
  readonly allowed: boolean;
  readonly by: string;
  /** Why the person denied the call; empty: no reason. */
  readonly message: string;
}

export interface ApprovalEntry {
  readonly kind: "approval";
  readonly turnId: string;
  readonly approvalId: string;
  readonly tool: string;
  readonly summary: string;
  readonly reason: string;
  /** JSON text of the complete arguments; empty: unknown. */
  readonly input: string;
  /** False: an approval covers this call only. */
  readonly mayAlways: boolean;
  /** ISO 8601. */
  readonly expiresAt: string;
  /** Null: open. */
  readonly decision: ApprovalDecision | null;
}

export interface QuestionEntry {
  readonly kind: "question";
  readonly turnId: string;
  readonly callId: string;
  readonly question: string;
  readonly options: readonly string[];
  readonly isOpen: boolean;
}

export interface RecapEntry {
  readonly kind: "recap";
  /** When the conversation was last used, as local time. */
  readonly lastUsed: string;
  /** The last texts, oldest first; those of the agent are Markdown. */
  readonly texts: readonly { readonly by: "person" | "agent"; readonly text: string }[];
}

export type Entry =
  | { readonly kind: "said"; readonly text: string; readonly by: SaidBy; readonly files: readonly string[] }
  /** Text of the agent, in Markdown. */
  | { readonly kind: "answer"; readonly text: string }
  | { readonly kind: "thinking"; readonly text: string }
  | ToolEntry
  | ApprovalEntry
  | QuestionEntry
  /** A line of the chat itself or of a turn. */
  | { readonly kind: "note"; readonly tone: "plain" | "warning" | "error"; readonly text: string }
  /** The result of a command: text with its line breaks, wrapped at the right edge. */
  | { readonly kind: "output"; readonly text: string }
  /** The end of the earlier conversation that a chat continues. */
  | RecapEntry;

/** A message of ours that no turn has taken yet. */
interface WaitingMessage {
  readonly id: string;
  readonly text: string;
  readonly files: readonly string[];
  /** The gateway has stored it. */
  readonly isAccepted: boolean;
  /** Milliseconds since 1970. */
  readonly sentAtMs: number;
}

export interface RunningTurn {
  readonly activity: "thinking" | "writing" | "waiting" | "compacting" | "retrying";
  /** When the activity began, in milliseconds since 1970. */
  readonly sinceMs: number;
  /** Running calls: call id to the tool and its start. */
  readonly tools: ReadonlyMap<string, { readonly tool: string; readonly sinceMs: number }>;
}

/** Texts of ours that a turn has taken and whose message event is still to come: it is not shown a second time. */
interface TakenText {
  readonly turnId: string;
  readonly text: string;
}

export interface ChatState {
  readonly entries: readonly Entry[];
  readonly waiting: readonly WaitingMessage[];
  readonly taken: readonly TakenText[];
  readonly turns: ReadonlyMap<string, RunningTurn>;
  /** Index of the entry that the text of a turn continues, by turn. */
  readonly growing: ReadonlyMap<string, number>;
  /** Index of the entry of a tool call, by its id. */
  readonly calls: ReadonlyMap<string, number>;
  readonly isConnected: boolean;
  /** What the chat itself asks; null: nothing. */
  readonly prompt: string | null;
  /** A stop was requested and its effect is still to come. */
  readonly isStopping: boolean;
  /** Of the turns that ended in this chat. */
  readonly spent: { readonly inputTokens: number; readonly outputTokens: number; readonly cost: Cost };
}

export const emptyState: ChatState = {
  entries: [],
  waiting: [],
  taken: [],
  turns: new Map(),
  growing: new Map(),
  calls: new Map(),
  isConnected: true,
  prompt: null,
  isStopping: false,
  spent: { inputTokens: 0, outputTokens: 0, cost: { micros: 0, unpricedCalls: 0 } },
};

export interface Activity {
  readonly label: string;
  /** Milliseconds since 1970. */
  readonly sinceMs: number;
}

/** What the agent is doing for this chat; null: nothing. Pure. */
export function activityOf(state: ChatState): Activity | null {
  const turn = [...state.turns.values()].at(-1);
  if (turn === undefined) {
    const first = state.waiting[0];
    return first === undefined ? null : { label: "thinking", sinceMs: first.sentAtMs };
  }
  const tools = [...turn.tools.values()];
  const [tool] = tools;
  if (tool === undefined) return { label: turn.activity, sinceMs: turn.sinceMs };
  const more = tools.length === 1 ? "" : ` and ${tools.length - 1} more`;
  return { label: `running ${tool.tool}${more}`, sinceMs: tool.sinceMs };
}

export type OpenQuestion = ApprovalEntry | QuestionEntry;

/** Open approvals and questions, oldest first: an answer applies to the first. Pure. */
export function openQuestions({ entries }: ChatState): OpenQuestion[] {
  return entries.filter(
    (entry): entry is OpenQuestion =>
      (entry.kind === "approval" && entry.decision === null) || (entry.kind === "question" && entry.isOpen),
  );
}
