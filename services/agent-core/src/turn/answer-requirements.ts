// Applies what the caller of a turn requires of its answer to the decision on the model's reply. Pure.
import { maxAnswerRetries, readAnswer, readAnswerSchema, type AnswerRequirements, type Part } from "@parley/contracts";
import { note, type RoundHistory } from "../limits/loop-guards.ts";
import type { Decision } from "./next-action.ts";

type Finishing = Extract<Decision, { next: "finish" }>;

/** The decision with the answer cut at a stop sequence and, if it must be JSON, checked: one that does not match is requested again. */
export function applyRequirements(
  decision: Decision,
  { stop = [], jsonSchema }: AnswerRequirements,
  { mismatches }: Pick<RoundHistory, "mismatches">,
): Decision {
  if (decision.next !== "finish" || decision.finish.exitReason === "refusal") return decision;
  const cut = cutAtStop(decision, stop);
  if (jsonSchema === undefined || cut.finish.exitReason === "max_tokens") return cut;
  const read = readAnswer(readAnswerSchema(JSON.parse(jsonSchema)), cut.finish.text);
  if ("json" in read) return { ...cut, finish: { ...cut.finish, text: read.json } };
  if (mismatches < maxAnswerRetries) {
    const again = `${read.problem}. Answer again with only one JSON value that matches the required JSON schema.`;
    return { next: "again", parts: cut.parts, note: note("mismatch", again), compact: false };
  }
  const text = `The answer does not match the required JSON schema, after ${maxAnswerRetries} further attempts: ${read.problem}.`;
  return { ...cut, finish: { state: "failed", exitReason: "error", text } };
}

function cutAtStop(decision: Finishing, stop: readonly string[]): Finishing {
  const { finish } = decision;
  const end = stopPosition(finish.text, stop);
  if (end === undefined) return decision;
  return {
    ...decision,
    parts: cutParts(decision.parts, stop),
    finish: { ...finish, exitReason: "stop_sequence", text: finish.text.slice(0, end) },
  };
}

/** The position of the first of these texts; undefined: it has none. */
function stopPosition(text: string, stop: readonly string[]): number | undefined {
  const found = stop.map((each) => text.indexOf(each)).filter((at) => at >= 0);
  return found.length === 0 ? undefined : Math.min(...found);
}

/** The parts up to the first stop sequence, and no text after it. */
function cutParts(parts: readonly Part[], stop: readonly string[]): Part[] {
  const kept: Part[] = [];
  let hasEnded = false;
  for (const part of parts) {
    if (part.type !== "text") {
      kept.push(part);
      continue;
    }
    if (hasEnded) continue;
    const end = stopPosition(part.text, stop);
    hasEnded = end !== undefined;
    if (end !== 0) kept.push({ ...part, text: part.text.slice(0, end) });
  }
  return kept;
}
