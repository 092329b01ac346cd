// The rehearsal model: no network, no key, no intelligence. It identifies itself and follows a small script in the
// message (script.ts, docs/rehearsal.md), so that a newcomer can try the whole cluster and tests can control
// it.
import { setTimeout as delay } from "node:timers/promises";
import { textOf, type Part, type ToolResult, type Usage } from "@parley/contracts";
import { ModelError, type ModelProvider, type ModelReply, type ModelRequest, type PromptMessage } from "../provider.ts";
import { emptyRound, parseScript, type ScriptStep } from "./script.ts";

const note =
  "the built-in rehearsal model: it follows scripts and does not understand text; npx parley onboard sets up a real one";

/** `models.known.rehearsal` can reduce it. */
const contextTokens = 200_000;

/** How many failing calls are remembered. */
const rememberedCalls = 1_000;

/** `model`: different names allow several instances in one chain. */
export function createRehearsal(model = "rehearsal"): ModelProvider {
  /** Attempts of failing calls, by request. */
  const tries = new Map<string, number>();
  return {
    name: "rehearsal",
    model,
    priceList: "free",
    note: () => note,
    prepare: async () => undefined,
    size: async () => ({ contextTokens, maxOutputTokens: null }),
    async stream(request, on, signal) {
      on.alive();
      const { script, done, results, isUnsent } = currentTurn(request.messages);
      const round = roundOf({ script, done, isUnsent });
      await pause(round.pauseMs, signal);
      const key = JSON.stringify([request.messages.length, done, script]);
      failIfTold(round, tries, key);
      const reply = { ...answer(request, round, { script, done, results, isUnsent }), model };
      for (const part of reply.parts) {
        if (part.type === "reasoning") on.delta({ type: "reasoning", text: part.text });
        if (part.type === "tool_call") {
          for (const text of part.input.match(/.{1,12}/gs) ?? []) {
            await pause(round.waitMs, signal);
            on.alive();
            on.delta({ type: "tool_input", id: part.id, name: part.name, text });
          }
        }
        if (part.type !== "text") continue;
        for (const word of part.text.match(/\s*\S+\s*$|\s*\S+/g) ?? []) {
          await pause(round.waitMs, signal);
          on.alive();
          on.delta({ type: "text", text: word });
        }
      }
      return reply;
    },
  };
}

/** Throws the signal's reason when it is aborted. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  // On abort the timer rejects with its own error; the caller needs the signal's reason.
  if (ms > 0) await delay(ms, undefined, { signal }).catch(() => undefined);
  signal.throwIfAborted();
}

/** The answer without failures; pure, so that a repeated call returns the same answer. */
export function rehearse(request: ModelRequest): ModelReply {
  const turn = currentTurn(request.messages);
  return answer(request, roundOf(turn), turn);
}

/** How summary requests start: they contain material and no script. Must match compaction/summary-request.ts. */
const summaryRequest = /^Write the summary that will replace/;
const emptySummary =
  "Summary by the rehearsal model, which does not understand text: there were earlier messages, and their content is not known.";

function roundOf({ script, done, isUnsent }: Omit<Rehearsed, "results">): ScriptStep {
  if (summaryRequest.test(script)) return { ...emptyRound(), say: [emptySummary] };
  const rounds = parseScript(script);
  const last = rounds.at(-1) ?? emptyRound();
  const repeated = isUnsent && last.calls.length === 0 ? last.say : [];
  return rounds[done] ?? { ...emptyRound(), waitMs: last.waitMs, say: repeated };
}

/** Throws as often as the script specifies. */
function failIfTold({ fail }: ScriptStep, tries: Map<string, number>, key: string): void {
  if (fail === undefined) return;
  const before = tries.get(key) ?? 0;
  if (before >= fail.times) return;
  tries.delete(key);
  tries.set(key, before + 1);
  const [oldest] = tries.keys();
  if (tries.size > rememberedCalls && oldest !== undefined) tries.delete(oldest);
  throw new ModelError(fail.failure, "failure requested by the script", { retryAfterMs: fail.retryAfterMs });
}

interface Rehearsed {
  script: string;
  done: number;
  results: ToolResult[];
  /** The last text was sent to nobody, and the loop asks for it again. */
  isUnsent: boolean;
}

function answer(request: ModelRequest, round: ScriptStep, { script, done, results }: Rehearsed): ModelReply {
  const thinking: Part[] = round.think === undefined ? [] : [{ type: "reasoning", text: round.think }];
  const said = limited(round.say.join("\n"), request);
  const text: Part[] = round.say.length === 0 ? [] : [{ type: "text", text: said.text }];
  const calls: Part[] = round.calls.map((call, index) => ({
    type: "tool_call",
    id: `call_${request.messages.length}_${done}_${index}`,
    name: call.name,
    input: call.input,
  }));
  const summary: Part[] = [{ type: "text", text: summarise(script, results) }];
  const parts = [...thinking, ...text, ...calls, ...(calls.length === 0 && text.length === 0 ? summary : [])];
  const stopReason = round.stop ?? said.stop ?? (calls.length > 0 ? "tool_use" : "end_turn");
  const stopSequence = stopReason === "stop_sequence" ? said.stopSequence : undefined;
  const usage = usageOf(request, round, parts);
  return { parts, stopReason, rawStopReason: stopReason, stopSequence, usage, model: "rehearsal" };
}

/** The text up to the first stop sequence and the limit of output, with one token for each word. */
function limited(
  text: string,
  { maxOutputTokens, stopSequences = [] }: ModelRequest,
): { text: string; stop?: "stop_sequence" | "max_tokens"; stopSequence?: string } {
  const found = stopSequences.filter((each) => text.includes(each));
  const [first] = found.toSorted((one, other) => text.indexOf(one) - text.indexOf(other));
  if (first !== undefined)
    return { text: text.slice(0, text.indexOf(first)), stop: "stop_sequence", stopSequence: first };
  const words = text.match(/\s*\S+/g) ?? [];
  if (words.length <= maxOutputTokens) return { text };
  return { text: words.slice(0, maxOutputTokens).join(""), stop: "max_tokens" };
}

function usageOf(request: ModelRequest, { usage }: ScriptStep, parts: readonly Part[]): Usage | null {
  if (usage === null) return null;
  return {
    inputTokens: usage?.input ?? countTokens(request),
    outputTokens: usage?.output ?? Math.ceil(textOf(parts).length / 4),
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
  };
}

/** The person's last message, the number of model calls since then, and the tool results since then. */
function currentTurn(messages: readonly PromptMessage[]): Rehearsed {
  let start = messages.length - 1;
  while (start > 0 && !hasText(messages[start])) start -= 1;
  const after = messages.slice(start + 1);
  const own = messages[start]?.parts.findLast(isSaid);
  return {
    script: own?.type === "text" ? own.text : "",
    // Requests contain no empty answers, only the notes that asked again.
    done:
      after.filter((message) => message.role === "assistant").length +
      [messages[start], ...after].flatMap((message) => message?.parts.filter(isAfterEmptyAnswer) ?? []).length,
    results: after.flatMap((message) => message.parts.filter((part) => part.type === "tool_result")),
    isUnsent:
      after.at(-1)?.parts.some((part) => part.type === "text" && part.text.startsWith("[Nothing was said:")) ?? false,
  };
}

function hasText(message: PromptMessage | undefined): boolean {
  return message?.role === "user" && message.parts.some(isSaid);
}

/** A person's own text, as opposed to its header and to notes of the loop. */
function isSaid(part: Part): boolean {
  return part.type === "text" && !loopText.test(part.text);
}

function isAfterEmptyAnswer(part: Part): boolean {
  return part.type === "text" && part.text.startsWith("[Your last answer was empty:");
}

const loopText =
  /^\[(?:[A-Z][a-z]{2} \d{4}-\d{2}-\d{2} [^\]]*\]\n$|Cut off:|Nothing was said:|Your last answer was empty:|Your answer does not match:|A hook wants|The same call|Memory:|Documents have changed\])/;

function summarise(script: string, results: ToolResult[]): string {
  if (results.length === 0) return `[rehearsal model] You said: ${script}`;
  const lines = results.map(
    (result) => `- ${result.name}${result.isError ? " (error)" : ""}: ${result.content.slice(0, 500)}`,
  );
  return `[rehearsal model] Tool results:\n${lines.join("\n")}`;
}

function countTokens(request: ModelRequest): number {
  return Math.ceil(
    request.messages.reduce((sum, message) => sum + textOf(message.parts).length, request.system.length) / 4,
  );
}
