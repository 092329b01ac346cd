// Whether a hook is meant: by its event and its matcher. Pure.
import type { HookEvent, HookSettings } from "@parley/contracts";

/** `subject`: the tool's name, or the event's own word. The matcher is exact, with `*` for any text, several as `a|b`; empty means always. */
export function matches(hook: Pick<HookSettings, "event" | "matcher">, event: HookEvent, subject: string): boolean {
  if (hook.event !== event) return false;
  const { matcher = "" } = hook;
  if (matcher.trim() === "") return true;
  return matcher.split("|").some((pattern) => matchesPattern(pattern.trim(), subject));
}

/** Whether hooks want to see what any tool says. */
export function hasOutputHooks(hooks: readonly Pick<HookSettings, "event">[]): boolean {
  return hooks.some(({ event }) => outputEvents.some((each) => each === event));
}

/** Whether hooks want to see what this tool says before anybody reads it. */
export function watchesOutput(hooks: readonly Pick<HookSettings, "event" | "matcher">[], tool: string): boolean {
  return hooks.some((hook) => outputEvents.some((event) => matches(hook, event, tool)));
}

const outputEvents = ["PostToolUse", "PostToolUseFailure"] as const;

/** Said in place of a result that such a hook should have seen and has not. */
export const withheldText = "[withheld: the hook on its output did not run]";

/** Between the first and the last part, each part is looked for after the one before: no backtracking. */
function matchesPattern(pattern: string, subject: string): boolean {
  const parts = pattern.split("*");
  const [first = "", ...others] = parts;
  const last = others.pop();
  if (last === undefined) return pattern === subject;
  if (!subject.startsWith(first)) return false;
  let position = first.length;
  for (const part of others) {
    const found = subject.indexOf(part, position);
    if (found < 0) return false;
    position = found + part.length;
  }
  return subject.length - last.length >= position && subject.endsWith(last);
}
