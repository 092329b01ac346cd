// The script language of the rehearsal model (docs/rehearsal.md); pure. One instruction per line; other lines are
// ignored.
import type { ModelFailure, StopReason } from "../provider.ts";

/** The behaviour of one model call. */
export interface ScriptStep {
  calls: { name: string; input: string }[];
  say: string[];
  think: string | undefined;
  /** Delay before each word of the answer. */
  waitMs: number;
  /** Delay before the answer. */
  pauseMs: number;
  /** Fails the first `times` attempts of the call; Infinity: always. */
  fail: { failure: ModelFailure; times: number; retryAfterMs: number | undefined } | undefined;
  /** Replaces the true stop reason. */
  stop: StopReason | undefined;
  /** Reported tokens of input and output; null: none reported. */
  usage: { input: number; output: number } | null | undefined;
}

export function emptyRound(): ScriptStep {
  return {
    calls: [],
    say: [],
    think: undefined,
    waitMs: 0,
    pauseMs: 0,
    fail: undefined,
    stop: undefined,
    usage: undefined,
  };
}

export function parseScript(text: string): ScriptStep[] {
  const rounds = [emptyRound()];
  for (const line of text.split("\n")) {
    if (line.trim() === "then") rounds.push(emptyRound());
    else readLine(rounds.at(-1) ?? emptyRound(), line);
  }
  return rounds;
}

function readLine(round: ScriptStep, line: string): void {
  const [, verb, rest = ""] = /^(tool|say|think|wait|pause|fail|stop|usage|words):\s?(.*)$/.exec(line) ?? [];
  const words = rest.trim().split(/\s+/);
  switch (verb) {
    case "tool": {
      const [name = ""] = words;
      const input = rest.trim().slice(name.length).trim();
      round.calls.push({ name, input: input === "" ? "{}" : input });
      return;
    }
    case "say":
      round.say.push(rest);
      return;
    case "words":
      round.say.push(Array.from({ length: count(words[0]) }, (_, index) => `word${index + 1}`).join(" "));
      return;
    case "think":
      round.think = rest;
      return;
    case "wait":
      round.waitMs = count(words[0]);
      return;
    case "pause":
      round.pauseMs = count(words[0]);
      return;
    case "fail":
      round.fail = failing(words);
      return;
    case "stop":
      round.stop = stopReasons.find((reason) => reason === words[0]);
      return;
    case "usage":
      round.usage = words[0] === "unknown" ? null : { input: count(words[0]), output: count(words[1]) };
      return;
    default:
  }
}

const stopReasons: readonly StopReason[] = [
  "end_turn",
  "tool_use",
  "max_tokens",
  "stop_sequence",
  "pause_turn",
  "refusal",
  "model_context_window_exceeded",
  "other",
];

const failures: readonly ModelFailure[] = [
  "rate_limit",
  "overloaded",
  "server",
  "connection",
  "stalled",
  "auth",
  "spend_limit",
  "context_overflow",
  "unknown_model",
  "invalid",
];

/** `<failure> [times|always] [retry-after ms]`. */
function failing([name, times, after]: string[]): ScriptStep["fail"] {
  const failure = failures.find((each) => each === name);
  if (failure === undefined) return undefined;
  return {
    failure,
    times: times === undefined || times === "always" ? Number.POSITIVE_INFINITY : count(times),
    retryAfterMs: after === undefined ? undefined : count(after),
  };
}

function count(word: string | undefined): number {
  const value = Number(word);
  return Number.isFinite(value) && value > 0 ? Math.floor(value) : 0;
}
