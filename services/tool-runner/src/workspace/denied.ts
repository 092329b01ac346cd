// Compiles a call's deny rules into a predicate: tools neither show nor open the paths for which it is true. Pure. The patterns are those of
// permission rules.
import { compilePathPattern } from "@parley/contracts";

/** `relative`: a path relative to the workspace folder, separated by `/`. */
export type IsDenied = (relative: string) => boolean;

/** Patterns are relative to the workspace, or begin with `/workspace/`, its path in the sandbox. */
export function compileDenyRules(patterns: readonly string[]): IsDenied {
  const matchers = patterns.map((pattern) => compilePathPattern(pattern.replace(/^\/workspace\//, "")));
  return (relative) => {
    const names = relative.split("/").filter((name) => name !== "" && name !== ".");
    return names.length > 0 && matchers.some((matches) => matches(names));
  };
}
