// Arguments of the commands `parley docs …`: a document path and version numbers. Pure.

import type { OptionValues } from "../command-line/options.ts";
import { UsageError } from "../errors.ts";

/** Throws UsageError if it is missing. */
export function givenPath([path]: readonly string[]): string {
  if (path === undefined) throw new UsageError("Name a document; parley docs list shows them.");
  return path;
}

/** Undefined without the option; throws UsageError for an invalid version. */
export function givenVersion(values: OptionValues, name: string): number | undefined {
  const text = values.text(name);
  if (text === undefined) return undefined;
  if (!/^[1-9]\d{0,8}$/.test(text))
    throw new UsageError(`--${name}: "${text}" is not a version; parley docs history shows them.`);
  return Number(text);
}
