// Matches the names and arguments of prompts that people type in commands to those of the server. Pure.
import type { Prompt } from "@modelcontextprotocol/client";

/** A name in the form used in commands. */
export function typedName(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9_-]/g, "_");
}

/** The matching item: by its exact name, otherwise by its typed form if that is unique. */
export function findByTypedName<T>(all: readonly T[], nameOf: (each: T) => string, said: string): T | undefined {
  const exact = all.find((each) => nameOf(each) === said);
  if (exact !== undefined) return exact;
  const [only, second] = all.filter((each) => typedName(nameOf(each)) === typedName(said));
  return second === undefined ? only : undefined;
}

/** The arguments by name; or the problem, for the person. */
export function argumentsOf(
  { arguments: wanted = [] }: Pick<Prompt, "arguments">,
  words: readonly string[],
): { values: Record<string, string> } | { problem: string } {
  const named = words.map((word) => {
    const at = word.indexOf("=");
    const name = wanted.find((each) => each.name === word.slice(0, Math.max(0, at)))?.name;
    return name === undefined ? undefined : ([name, word.slice(at + 1)] as const);
  });
  const byName = named.length > 0 && named.every((pair) => pair !== undefined);
  if (!byName && words.length > 0 && wanted.length === 0) return { problem: "it takes no arguments" };
  const values: Record<string, string> = byName ? Object.fromEntries(named) : inOrder(wanted, words);
  const missing = wanted.filter(({ name, required }) => required === true && values[name] === undefined);
  if (missing.length === 0) return { values };
  return { problem: `it requires ${missing.map(({ name }) => name).join(", ")}` };
}

function inOrder(wanted: readonly { name: string }[], words: readonly string[]): Record<string, string> {
  const pairs = wanted.flatMap(({ name }, index) => {
    const rest = index === wanted.length - 1 ? words.slice(index) : words.slice(index, index + 1);
    return rest.length === 0 ? [] : [[name, rest.join(" ")] as const];
  });
  return Object.fromEntries(pairs);
}
