// Whether a hook applies to an event: by the event and its matcher. Pure.
import { matcherPatterns, matchesNamePattern, type HookEvent, type HookSettings } from "@parley/contracts";

/**
 * `subjects`: every name the tool goes by, or the event's own word; one match is enough. The matcher is exact, with `*` for
 * any text, several as `a|b`; an empty one always matches.
 */
export function matches(
  hook: Pick<HookSettings, "event" | "matcher">,
  event: HookEvent,
  subjects: readonly string[],
): boolean {
  if (hook.event !== event) return false;
  const patterns = matcherPatterns(hook.matcher);
  return (
    patterns.length === 0 ||
    patterns.some((pattern) => subjects.some((subject) => matchesNamePattern(pattern, subject)))
  );
}

/** Whether hooks want to see what any tool says. */
export function hasOutputHooks(hooks: readonly Pick<HookSettings, "event">[]): boolean {
  return hooks.some(({ event }) => outputEvents.some((each) => each === event));
}

/** Whether hooks receive the output of this tool before anybody reads it. `names`: every name the tool goes by. */
export function watchesOutput(
  hooks: readonly Pick<HookSettings, "event" | "matcher">[],
  names: readonly string[],
): boolean {
  return hooks.some((hook) => outputEvents.some((event) => matches(hook, event, names)));
}

const outputEvents = ["PostToolUse", "PostToolUseFailure"] as const;

/** Said in place of a result that such a hook should have seen and has not. */
export const withheldText = "[withheld: the hook on its output did not run]";
