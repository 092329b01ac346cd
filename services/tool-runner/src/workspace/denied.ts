// Decides which paths the deny rules of a call hide from it. Pure; patterns have the semantics of permission rules.
import { compilePath } from "@parley/contracts";

/** `relative`: from the workspace folder, with `/`. */
export type IsDenied = (relative: string) => boolean;

export function deniedBy(patterns: readonly string[]): IsDenied {
  const matchers = patterns.map((pattern) => compilePath(pattern.replace(/^\/workspace\//, "")));
  return (relative) => {
    const names = relative.split("/").filter((name) => name !== "" && name !== ".");
    return names.length > 0 && matchers.some((matches) => matches(names));
  };
}
