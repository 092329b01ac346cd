// Parses the output of a hook command, or the response of a hook URL, into a result. Pure.
import { HookOutputSchema, maxHookOutputBytes, type HookResult } from "@parley/contracts";
import { parseJson } from "@parley/kit";

export function failed(reason: string): HookResult {
  return { outcome: "failed", reason };
}

export const tooMuchOutput = failed(`its output has more than ${maxHookOutputBytes} bytes`);

export function tooSlow(timeoutMs: number): HookResult {
  return failed(`it took longer than ${timeoutMs / 1_000} s`);
}

/** Empty output is a neutral answer. */
export function parseAnswer(text: string): HookResult {
  if (text.trim() === "") return { outcome: "answered", answer: {} };
  const value = parseJson(text);
  if (value === undefined) return failed("its output is not JSON");
  const result = HookOutputSchema.safeParse(value);
  if (result.success) return { outcome: "answered", answer: result.data };
  const issue = result.error.issues[0];
  const path = issue === undefined || issue.path.length === 0 ? "the output" : issue.path.join(".");
  return failed(`its output is not a valid hook answer: ${path}: ${issue?.message ?? "invalid"}`);
}
