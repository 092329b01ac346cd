// What a model's reply means for the turn; pure. The table of the API's stop reasons: run tools, ask again, go on with a word of
// the loop, or end with the reason and what the user is told.
import { textOf, type ExitReason, type Finish, type OutputMode, type Part, type ToolCall } from "@parley/contracts";
import type { ModelReply } from "../model/provider.ts";
import { saysNothing } from "../schedule/heartbeat.ts";
import { note, type Rounds } from "./guards.ts";

export type Decision =
  | { next: "tools"; calls: ToolCall[]; parts: Part[] }
  /** Ask again, with what the loop says behind the reply; no note: the model paused itself. `compact`: make room first. */
  | { next: "again"; parts: Part[]; note: Part[]; compact: boolean }
  | { next: "finish"; parts: Part[]; finish: Finish };

export interface DecideContext {
  output: OutputMode;
  /** Texts that the tool `message` has sent in this turn. */
  said: readonly string[];
  rounds: Rounds;
  /** What the turn has written just before this reply in answers that were cut off or paused: the reply goes on from there. */
  before: string;
  onMaxTokens: readonly ("nudge" | "compact" | "exit")[];
  maxNudges: number;
  unspoken: "deliver" | "log" | "reprompt";
  /** Of a heartbeat: an answer that says by this token that there is nothing to say is heard by nobody. */
  okToken?: string | undefined;
  /** A compaction would make room. */
  canCompact: boolean;
}

const silentAnswer = "(I have nothing to add.)";

export function decide(reply: ModelReply, context: DecideContext): Decision {
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

/** The model has nothing more to do. Where people only hear the tool `message`, a turn that said nothing is not simply over. */
function ended(parts: Part[], context: DecideContext): Decision {
  const finished: Decision = { next: "finish", parts, finish: end("end_turn", joined(context.before, parts)) };
  const unheard = context.output === "message_tool" && context.said.length === 0 && context.unspoken === "reprompt";
  if (!unheard || context.rounds.reprompted || isQuiet(finished.finish, context)) return finished;
  return {
    next: "again",
    parts,
    note: note(
      "unspoken",
      "people only see what the tool `message` sends. Send your answer with it now, or call no tool if nothing is to be said.",
    ),
    compact: false,
  };
}

const goOn = "Go on where you stopped, more briefly, and do not repeat what you have said.";

/** A call in a reply that was cut off may be incomplete: it is dropped before anything is appended. */
function cutOff(parts: Part[], context: DecideContext, notice: string): Decision {
  const kept = withoutCalls(parts);
  for (const way of context.onMaxTokens) {
    if (way === "nudge" && context.rounds.nudges < context.maxNudges) {
      return { next: "again", parts: kept, note: note("nudge", goOn), compact: false };
    }
    if (way === "compact" && context.canCompact) {
      return { next: "again", parts: kept, note: note("nudge", goOn), compact: true };
    }
    if (way === "exit") break;
  }
  return cutEnd(parts, context, notice);
}

function cutEnd(parts: Part[], { before }: DecideContext, notice: string): Decision {
  const kept = withoutCalls(parts);
  const text = joined(before, kept);
  return { next: "finish", parts: kept, finish: end("max_tokens", text === "" ? notice : `${text}\n\n[${notice}]`) };
}

/** An answer in pieces is one answer to people. */
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
  return finish.text === silentAnswer || saysNothing(finish.text, okToken);
}

/**
 * The end as it is kept and shown to those who asked: where people only see what the tool `message` sends, what it sent here is the
 * answer, and the text beside it is not.
 */
export function answeredEnd(finish: Finish, output: DecideContext["output"], saidHere: readonly string[]): Finish {
  const ended = finish.exitReason === "end_turn" || finish.exitReason === "stop_sequence";
  if (output !== "message_tool" || !ended || saidHere.length === 0) return finish;
  return { ...finish, text: saidHere.join("\n\n") };
}

/** What of a turn's end is sent to people. `text` was said already: not again. */
export function spokenEnd(
  finish: Finish,
  context: Pick<DecideContext, "output" | "said" | "unspoken" | "okToken">,
): string | null {
  if (isQuiet(finish, context)) return null;
  const ended = finish.exitReason === "end_turn" || finish.exitReason === "stop_sequence";
  switch (context.output) {
    case "final_text":
      return finish.text;
    case "both":
      if (context.said.length > 0 && finish.text === silentAnswer) return null;
      return context.said.includes(finish.text) ? null : finish.text;
    case "message_tool":
      // Limits, failures and refusals are the loop's words: they are always told.
      if (!ended) return finish.text;
      return context.said.length === 0 && context.unspoken !== "log" && finish.text !== silentAnswer
        ? finish.text
        : null;
    default:
      return context.output satisfies never;
  }
}
