// Whether a hook applies to an event, by the event's name and the hook's matcher. Pure.
import { matcherPatterns, matchesNamePattern, type HookEvent, type HookSettings } from "@parley/contracts";

/**
 * `subjects`: all names of the tool, or the event's subject; one match suffices. A matcher is exact, with `*` for any
 * text and `a|b` for alternatives; an empty one always matches.
 */
export function matchesHook(
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

/** Whether any hook receives tool output. */
export function hasOutputHooks(hooks: readonly Pick<HookSettings, "event">[]): boolean {
  return hooks.some(({ event }) => outputEvents.some((each) => each === event));
}

/** Whether hooks receive this tool's output before anyone reads it. `names`: all names of the tool. */
export function appliesToOutput(
  hooks: readonly Pick<HookSettings, "event" | "matcher">[],
  names: readonly string[],
): boolean {
  return hooks.some((hook) => outputEvents.some((event) => matchesHook(hook, event, names)));
}

const outputEvents = ["PostToolUse", "PostToolUseFailure"] as const;

/** Replaces a result that such a hook should have received and did not. */
export const redactedText = "[withheld: the hook on its output did not run]";

/** Whether the hook runs in a session of this profile; null: of the agent itself. */
export function isForProfile(hook: Pick<HookSettings, "profile">, profile: string | null): boolean {
  return hook.profile === undefined || hook.profile === profile;
}
