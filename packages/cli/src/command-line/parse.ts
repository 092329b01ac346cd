// Parses arguments into a command and its values. Options may be anywhere; an unknown one is an error with a suggestion. Pure.

import { parseArgs } from "node:util";

import { UsageError } from "../errors.ts";
import type { Call, CommandSpec } from "./command.ts";
import { helpOption, OptionValues, type OptionSpec, type OptionTable } from "./options.ts";
import { nearestName } from "@parley/contracts";

export type Parsed =
  | { readonly kind: "help"; readonly command: CommandSpec | null }
  | { readonly kind: "version" }
  | ({ readonly kind: "run"; readonly command: CommandSpec } & Omit<Call, "io">);

/** Throws UsageError. */
export function parseCommandLine(args: readonly string[], commands: readonly CommandSpec[]): Parsed {
  const [first = ""] = args;
  const passing = commands.find((command) => command.passThrough === true && command.name === first);
  if (passing !== undefined) {
    return { kind: "run", command: passing, values: new OptionValues([]), positionals: [], rest: args.slice(1) };
  }

  const { tokens } = parseArgs({
    args: [...args],
    options: { ...union(commands), ...parserForm(helpOption) },
    strict: false,
    allowPositionals: true,
    allowNegative: false,
    tokens: true,
  });
  const words = tokens.flatMap((token) => (token.kind === "positional" ? [token.value] : []));
  const given = tokens.flatMap((token) => (token.kind === "option" ? [token] : []));
  const wantsHelp = given.some((option) => option.name === "help") || words[0] === "help";
  if (given.some((option) => option.rawName === "--version") && words.length === 0) return { kind: "version" };
  const named = words[0] === "help" ? words.slice(1) : words;
  if (named.length === 0) {
    if (wantsHelp || given.length === 0) return { kind: "help", command: null };
    throw new UsageError("Name a command.", "parley --help lists them.");
  }
  const command = findCommand(named, commands);
  if (wantsHelp) return { kind: "help", command };

  const table: OptionTable = { ...command.options, ...helpOption };
  const values: [string, string | true][] = [];
  for (const option of given) {
    const spec = table[option.name];
    if (spec === undefined) throw unknownOption(option.rawName, command, table);
    values.push([option.name, valueOf(option.rawName, spec, option.value)]);
  }
  const positionals = named.slice(command.name.split(" ").length);
  const most = command.maxOperands ?? 0;
  if (positionals.length > most) {
    const extra = positionals[most] ?? "";
    const quote = most === 1 && positionals.length > 1 ? " Quote a text that contains spaces." : "";
    throw new UsageError(`parley ${command.name}: unexpected argument "${extra}".${quote}`, helpLine(command));
  }
  return { kind: "run", command, values: new OptionValues(values), positionals, rest: [] };
}

/** The command with the longest name that the words begin with. */
function findCommand(words: readonly string[], commands: readonly CommandSpec[]): CommandSpec {
  const matches = commands.filter((command) => command.name.split(" ").every((part, index) => part === words[index]));
  const best = matches.toSorted((a, b) => b.name.length - a.name.length)[0];
  const [first = "", second] = words;
  const below = commands.flatMap(({ name }) => (name.startsWith(`${first} `) ? [name.slice(first.length + 1)] : []));
  if (below.length > 0 && second !== undefined && (best === undefined || best.name === first)) {
    throw unknownWord(`parley ${first} ${second}`, `parley ${first} `, second, below);
  }
  if (best !== undefined) return best;
  if (below.length > 0) throw new UsageError(`parley ${first} needs a subcommand: ${below.join(", ")}.`);
  const known = [...new Set(commands.map(({ name }) => name.split(" ")[0] ?? name))];
  throw unknownWord(`parley ${first}`, "parley ", first, known);
}

function unknownWord(typed: string, prefix: string, word: string, known: readonly string[]): UsageError {
  const near = nearestName(word, known);
  return new UsageError(
    `There is no command "${typed}".${near === null ? "" : ` Did you mean "${prefix}${near}"?`}`,
    near === null ? `Commands: ${known.join(", ")}.` : undefined,
  );
}

function unknownOption(raw: string, command: CommandSpec, table: OptionTable): UsageError {
  const near = raw.startsWith("--") ? nearestName(raw.slice(2), Object.keys(table)) : null;
  const hint = near === null ? "" : ` Did you mean --${near}?`;
  return new UsageError(`parley ${command.name} has no option ${raw}.${hint}`, helpLine(command));
}

function valueOf(raw: string, spec: OptionSpec, value: string | undefined): string | true {
  if (spec.type === "boolean") {
    if (value !== undefined) throw new UsageError(`${raw} takes no value.`);
    return true;
  }
  if (value === undefined || value === "")
    throw new UsageError(`${raw} needs a value: ${raw} ${spec.value ?? "<value>"}`);
  if (spec.choices !== undefined && !spec.choices.includes(value)) {
    const near = nearestName(value, spec.choices);
    throw new UsageError(
      `${raw}: "${value}" is not one of ${spec.choices.join(", ")}.${near === null ? "" : ` Did you mean "${near}"?`}`,
    );
  }
  return value;
}

function helpLine(command: CommandSpec): string {
  return `parley ${command.name} --help shows its usage.`;
}

function parserForm(table: OptionTable): Record<string, { type: "string" | "boolean"; short?: string }> {
  return Object.fromEntries(
    Object.entries(table).map(([name, { type, short }]) => [name, short === undefined ? { type } : { type, short }]),
  );
}

/** All options of all commands: an option means the same everywhere, so the arguments can be read before the command is known. */
function union(commands: readonly CommandSpec[]): ReturnType<typeof parserForm> {
  return Object.assign({}, ...commands.map((command) => parserForm(command.options))) as ReturnType<typeof parserForm>;
}
