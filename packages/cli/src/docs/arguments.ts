// What the commands `parley docs …` are given: the path of a document, the numbers of its versions. Pure.

import type { OptionValues } from "../command-line/options.ts";
import { UsageError } from "../errors.ts";

/** Throws UsageError where none was given. */
export function givenPath([path]: readonly string[]): string {
  if (path === undefined) throw new UsageError("Which document? parley docs list shows them.");
  return path;
}

/** Undefined where the option was not given; throws UsageError for what is no version. */
export function givenVersion(values: OptionValues, name: string): number | undefined {
  const text = values.text(name);
  if (text === undefined) return undefined;
  if (!/^[1-9]\d{0,8}$/.test(text))
    throw new UsageError(`--${name}: "${text}" is no version; parley docs history shows them.`);
  return Number(text);
}
