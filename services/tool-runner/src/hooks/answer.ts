// From what a hook printed, or answered, to what it means. Pure.
import { HookOutputSchema, maxHookOutputBytes, type HookResult } from "@parley/contracts";
import type { HookCommandEnd } from "./command.ts";
import type { HookReply } from "./post.ts";

/** The exit code by which a command says no without printing JSON. */
const denyExitCode = 2;

export function failed(reason: string): HookResult {
  return { outcome: "failed", reason };
}

/** What a command that has ended says. */
export function answerOfCommand(end: HookCommandEnd, timeoutMs: number): HookResult {
  if (end.stopped === "timeout") return failed(tooSlow(timeoutMs));
  if (end.stopped === "output_limit") return failed(tooMuch);
  if (end.exitCode === null) return failed(`it was ended by ${end.signal ?? "a signal"}`);
  if (end.exitCode === denyExitCode) {
    const reason = end.stderr.trim();
    return { outcome: "answered", answer: { decision: "deny", ...(reason === "" ? {} : { reason }) } };
  }
  if (end.exitCode !== 0) return failed(`it ended with exit code ${end.exitCode}`);
  return readAnswer(end.stdout);
}

/** What an address that was posted to says. */
export function answerOfPost(reply: HookReply, timeoutMs: number): HookResult {
  if (reply.kind === "timeout") return failed(tooSlow(timeoutMs));
  if (reply.kind === "too_large") return failed(tooMuch);
  if (reply.kind === "unreachable") return failed(`the address could not be asked: ${reply.reason}`);
  // Redirects are not followed: the settings say which address is asked.
  if (reply.status < 200 || reply.status >= 300) return failed(`the address answered with status ${reply.status}`);
  return readAnswer(reply.body);
}

const tooMuch = `it said more than ${maxHookOutputBytes} bytes`;

function tooSlow(timeoutMs: number): string {
  return `it took longer than ${timeoutMs / 1_000} s`;
}

/** Nothing said is no opinion. */
function readAnswer(text: string): HookResult {
  if (text.trim() === "") return { outcome: "answered", answer: {} };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return failed("what it said is not JSON");
  }
  const result = HookOutputSchema.safeParse(value);
  if (result.success) return { outcome: "answered", answer: result.data };
  const issue = result.error.issues[0];
  const path = issue === undefined || issue.path.length === 0 ? "the answer" : issue.path.join(".");
  return failed(`what it said is not an answer of a hook: ${path}: ${issue?.message ?? "not understood"}`);
}
