// Parses the output of a hook command, or the response of a hook URL, into a result. Pure.
import { HookOutputSchema, maxHookOutputBytes, type HookResult } from "@parley/contracts";
import type { HookCommandEnd } from "./command-hook.ts";
import type { HookReply } from "./http-hook.ts";

/** The exit code with which a command denies without printing JSON. */
const denyExitCode = 2;

export function failed(reason: string): HookResult {
  return { outcome: "failed", reason };
}

/** The result of a command that has ended. */
export function answerOfCommand(end: HookCommandEnd, timeoutMs: number): HookResult {
  if (end.stopped === "timeout") return failed(tooSlow(timeoutMs));
  if (end.stopped === "output_limit") return failed(tooMuch);
  if (end.exitCode === null) return failed(`it was killed by ${end.signal ?? "a signal"}`);
  if (end.exitCode === denyExitCode) {
    const reason = end.stderr.trim();
    return { outcome: "answered", answer: { decision: "deny", ...(reason === "" ? {} : { reason }) } };
  }
  if (end.exitCode !== 0) return failed(`it ended with exit code ${end.exitCode}`);
  return readAnswer(end.stdout);
}

/** The result of an HTTP hook. */
export function answerOfPost(reply: HookReply, timeoutMs: number): HookResult {
  if (reply.kind === "timeout") return failed(tooSlow(timeoutMs));
  if (reply.kind === "too_large") return failed(tooMuch);
  if (reply.kind === "unreachable") return failed(`its URL could not be reached: ${reply.reason}`);
  // Redirects are not followed: only the configured URL receives requests.
  if (reply.status < 200 || reply.status >= 300) return failed(`its URL returned status ${reply.status}`);
  return readAnswer(reply.body);
}

const tooMuch = `its output has more than ${maxHookOutputBytes} bytes`;

function tooSlow(timeoutMs: number): string {
  return `it took longer than ${timeoutMs / 1_000} s`;
}

/** Empty output is a neutral answer. */
function readAnswer(text: string): HookResult {
  if (text.trim() === "") return { outcome: "answered", answer: {} };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return failed("its output is not JSON");
  }
  const result = HookOutputSchema.safeParse(value);
  if (result.success) return { outcome: "answered", answer: result.data };
  const issue = result.error.issues[0];
  const path = issue === undefined || issue.path.length === 0 ? "the output" : issue.path.join(".");
  return failed(`its output is not a valid hook answer: ${path}: ${issue?.message ?? "invalid"}`);
}
