// Maps a model's reply to the turn's next action; pure. The API's stop reason decides: run tools, call the model again,
// continue with a note of the loop, or finish with a reason and a text for the user.
import { textOf, type ExitReason, type Finish, type OutputMode, type Part, type ToolCall } from "@parley/contracts";
import type { ModelReply } from "../model/provider.ts";
import { isHeartbeatOk } from "../schedule/heartbeat.ts";
import { note, type RoundHistory } from "../limits/loop-guards.ts";

export type Decision =
  | { next: "tools"; calls: ToolCall[]; parts: Part[] }
  /**
   * Call the model again, with the loop's note after the reply; no note: the model paused itself. `compact`: compact
   * first.
   */
  | { next: "again"; parts: Part[]; note: Part[]; compact: boolean }
  | { next: "finish"; parts: Part[]; finish: Finish };

export interface DecideContext {
  output: OutputMode;
  /** Texts that the tool `message` has sent in this turn. */
  sentTexts: readonly string[];
  rounds: RoundHistory;
  /** Text of the preceding replies in this turn that were cut off or paused; this reply continues it. */
  before: string;
  onMaxTokens: readonly ("nudge" | "compact" | "exit")[];
  maxNudges: number;
  unspoken: "deliver" | "log" | "reprompt";
  /** For a heartbeat: an answer with this token has nothing to report and is sent to nobody. */
  okToken?: string | undefined;
  /** A compaction would free space. */
  canCompact: boolean;
  /** The conversation with this reply has reached a trigger of compaction: a reply that was cut off is then continued in a shorter one. */
  isDue: boolean;
  /** The limit of tokens that a reply can reach is that of the caller, who wants what there is. */
  isCallersLimit?: boolean | undefined;
}

/** How often an empty answer is requested again. */
const maxEmptyAnswers = 2;
const silentAnswer = "(I have nothing to add.)";

export function nextAction(reply: ModelReply, context: DecideContext): Decision {
  const { parts } = reply;
  const calls = parts.flatMap((part) => (part.type === "tool_call" ? [part] : []));
  const text = joined(context.before, parts);
  switch (reply.stopReason) {
    case "tool_use":
      return calls.length > 0 ? { next: "tools", calls, parts } : ended(parts, context);
    case "pause_turn":
      return { next: "again", parts: withoutCalls(parts), note: [], compact: false };
    case "max_tokens":
      return cutOff(parts, context, "My answer was cut off because it reached the length limit.");
    case "model_context_window_exceeded":
      return context.canCompact
        ? { next: "again", parts: withoutCalls(parts), note: note("nudge", goOn), compact: true }
        : cutEnd(parts, context, "My answer was cut off because this conversation fills the model's window.");
    case "refusal":
      return {
        next: "finish",
        parts: withoutCalls(parts),
        finish: end("refusal", text || "The model declined to answer this."),
      };
    case "stop_sequence":
      return { next: "finish", parts: withoutCalls(parts), finish: end("stop_sequence", text) };
    case "end_turn":
    case "other":
      return ended(withoutCalls(parts), context);
    default:
      return reply.stopReason satisfies never;
  }
}

/**
 * The model has finished. When people see only messages from the tool `message`, a turn without one may get a reminder.
 */
function ended(parts: Part[], context: DecideContext): Decision {
  const finished: Decision = { next: "finish", parts, finish: end("end_turn", joined(context.before, parts)) };
  if (context.sentTexts.length > 0 || isQuiet(finished.finish, context)) return finished;
  const isEmpty = finished.finish.text === silentAnswer;
  if (isEmpty && context.output !== "message_tool" && context.rounds.emptyAnswers < maxEmptyAnswers) {
    return { next: "again", parts, note: note("empty", "people receive your final text. Answer now."), compact: false };
  }
  const isUnsent = context.output === "message_tool" && context.unspoken === "reprompt";
  if (!isUnsent || context.rounds.reprompted) return finished;
  return {
    next: "again",
    parts,
    note: note(
      "unspoken",
      "people only see what the tool `message` sends. Send your answer with it now, or call no tool if there is nothing to send.",
    ),
    compact: false,
  };
}

const goOn = "Continue where you stopped, more briefly, and do not repeat earlier text.";

/** A call in a reply that was cut off may be incomplete, so all its calls are dropped. */
function cutOff(parts: Part[], context: DecideContext, notice: string): Decision {
  const kept = withoutCalls(parts);
  if (context.isCallersLimit === true)
    return { next: "finish", parts: kept, finish: cutByCaller(joined(context.before, kept)) };
  for (const way of context.onMaxTokens) {
    if (way === "nudge" && context.rounds.nudges < context.maxNudges) {
      return { next: "again", parts: kept, note: note("nudge", goOn), compact: false };
    }
    if (way === "compact" && context.canCompact && context.isDue) {
      return { next: "again", parts: kept, note: note("nudge", goOn), compact: true };
    }
    if (way === "exit") break;
  }
  return cutEnd(parts, context, notice);
}

/** The end of a turn whose caller allows no further tokens. */
export function cutByCaller(text: string): Finish {
  return { state: "done", exitReason: "max_tokens", text };
}

function cutEnd(parts: Part[], { before }: DecideContext, notice: string): Decision {
  const kept = withoutCalls(parts);
  const text = joined(before, kept);
  return { next: "finish", parts: kept, finish: end("max_tokens", text === "" ? notice : `${text}\n\n[${notice}]`) };
}

/** People receive an answer that came in pieces as one text. */
function joined(before: string, parts: readonly Part[]): string {
  return [before, textOf(parts)].filter((text) => text.trim() !== "").join("\n\n");
}

function end(exitReason: ExitReason, text: string): Finish {
  return { state: "done", exitReason, text: text.trim() === "" ? silentAnswer : text };
}

function withoutCalls(parts: Part[]): Part[] {
  return parts.filter((part) => part.type !== "tool_call");
}

function isQuiet(finish: Finish, { okToken }: Pick<DecideContext, "okToken">): boolean {
  if (okToken === undefined || finish.exitReason !== "end_turn") return false;
  return finish.text === silentAnswer || isHeartbeatOk(finish.text, okToken);
}

/**
 * The finish as stored and returned to callers. When people see only messages of the tool `message`, the texts it sent
 * to this conversation are the answer, and the model's final text is not.
 */
export function endWithAnswer(finish: Finish, output: DecideContext["output"], saidHere: readonly string[]): Finish {
  const ended = finish.exitReason === "end_turn" || finish.exitReason === "stop_sequence";
  if (output !== "message_tool" || !ended || saidHere.length === 0) return finish;
  return { ...finish, text: saidHere.join("\n\n") };
}

/**
 * The finish of a sub-agent's turn; its text is the report to the parent. Nobody else reads what the sub-agent sent to its own
 * conversation, so `saidHere` belongs to the report, and a turn without a text says so.
 */
export function endWithReport(finish: Finish, saidHere: readonly string[], sessionId: string): Finish {
  if (finish.state !== "done") return finish;
  const last = finish.text === silentAnswer || saidHere.includes(finish.text) ? [] : [finish.text];
  const text = [...saidHere, ...last].join("\n\n");
  return { ...finish, text: text === "" ? `(sub-agent ${sessionId} ended without a text)` : text };
}

/** The part of a turn's end that is sent to people; null when nothing or nothing new is to be sent. */
export function endWithMessages(
  finish: Finish,
  context: Pick<DecideContext, "output" | "sentTexts" | "unspoken" | "okToken">,
): string | null {
  if (isQuiet(finish, context)) return null;
  const ended = finish.exitReason === "end_turn" || finish.exitReason === "stop_sequence";
  switch (context.output) {
    case "final_text":
      return finish.text;
    case "both":
      if (context.sentTexts.length > 0 && finish.text === silentAnswer) return null;
      return context.sentTexts.includes(finish.text) ? null : finish.text;
    case "message_tool":
      // Notices about limits, failures and refusals are always sent.
      if (!ended) return finish.text;
      return context.sentTexts.length === 0 && context.unspoken !== "log" && finish.text !== silentAnswer
        ? finish.text
        : null;
    default:
      return context.output satisfies never;
  }
}
