// Parses arguments with commander, which also formats the help. Options may be anywhere; an unknown name is an error with a suggestion.
// A command that passes its arguments through has no options of its own. Pure.

import { nearestName } from "@parley/contracts";
import { Command, CommanderError, Option } from "commander";

import { ownVersion, UsageError, wrapWords } from "../io/io.ts";
import { helpOption, OptionValues, type OptionTable } from "../io/options.ts";
import type { Call, CommandSpec } from "./command.ts";

/** A text to print, or a command to run. */
export type Parsed = { readonly text: string } | ({ readonly command: CommandSpec } & Omit<Call, "io">);

const footer = `
parley <command> --help shows details and examples. Data goes to standard output, everything else to standard error.
Exit codes: 0 ok, 1 error, 2 invalid usage, 3 unhealthy, 130 interrupted by Ctrl-C, 143 terminated.`;

/** `width`: characters per line of a help text. Throws UsageError. */
export function parseCommandLine(args: readonly string[], commands: readonly CommandSpec[], width = 120): Parsed {
  let text = "";
  let parsed: Parsed | null = null;
  const program = new Command("parley")
    .description("talk to the agent and manage a Parley deployment")
    .usage("<command> [options]")
    .version(`parley ${ownVersion()}`, "--version", "show the version")
    .enablePositionalOptions()
    .exitOverride()
    .helpOption("-h, --help", helpOption["help"]?.about)
    .helpCommand(false)
    .configureHelp({ visibleCommands, subcommandTerm: fullName })
    .configureOutput({
      writeOut: (part) => (text += wrapWords(part, width)),
      writeErr: () => undefined,
      getOutHelpWidth: () => width,
    })
    .addHelpText("after", footer);
  for (const spec of commands) {
    const command = commandFor(spec, program);
    command.action(() => {
      checkNumbers(ordered, spec, command);
      checkOperands(spec, command);
      // Commander removes a leading `--`, which belongs to the other program.
      const positionals = spec.passThrough === true ? ordered.slice(1) : command.args;
      parsed = { command: spec, values: valuesOf(spec.options, command), positionals };
    });
  }
  const ordered = commandFirst(args, commands);
  checkNames(ordered, commands);
  try {
    program.parse(ordered.length === 0 ? ["--help"] : ordered, { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode !== 0) throw usageError(error, ordered, commands);
  }
  return parsed ?? { text };
}

function fullName(command: Command): string {
  const { parent } = command;
  return parent === null || parent.parent === null ? command.name() : `${fullName(parent)} ${command.name()}`;
}

/** Commands below a group are listed with their full names. */
function visibleCommands(command: Command): Command[] {
  return command.commands.flatMap((each) => [...(each.description() === "" ? [] : [each]), ...each.commands]);
}

function commandFor(
  { name, summary, operands = [], options, details, examples, passThrough }: CommandSpec,
  program: Command,
) {
  const [first = "", second] = name.split(" ");
  const group = program.commands.find((each) => each.name() === first) ?? program.command(first);
  const command = (second === undefined ? group : group.command(second))
    .description(summary)
    .usage(["[options]", ...operands].join(" "))
    .argument("[operands...]");
  if (passThrough === true) return command.passThroughOptions().allowUnknownOption().helpOption(false);
  for (const [option, { short, value, about, choices }] of Object.entries(options)) {
    const flags = `${short === undefined ? "" : `-${short}, `}--${option}${value === undefined ? "" : ` ${value}`}`;
    const each = new Option(flags, about);
    if (choices !== undefined) each.choices(choices);
    else if (value !== undefined) each.argParser((given: string, before?: string[]) => [...(before ?? []), given]);
    command.addOption(each);
  }
  const title = examples.length === 1 ? "Example" : "Examples";
  const after = [details ?? [], [`${title}:`, ...examples.map((example) => `  ${example}`)].join("\n")].flat();
  return command.addHelpText("after", `\n${after.join("\n\n")}`);
}

function valuesOf(options: OptionTable, command: Command): OptionValues {
  const given = command.opts<Record<string, string | string[] | true>>();
  const values = command.options.flatMap((option) =>
    [given[option.attributeName()] ?? []].flat().map((value) => [option.name(), value] as const),
  );
  for (const [name, value] of values)
    if (value === "") throw new UsageError(`--${name} needs a value: --${name} ${options[name]?.value ?? "<value>"}`);
  return new OptionValues(values);
}

/** Throws UsageError for the name of a command that does not exist, also where help is requested. */
function checkNames([first, second]: readonly string[], commands: readonly CommandSpec[]): void {
  if (first === undefined || first.startsWith("-")) return;
  const known = [...new Set(commands.map(({ name }) => name.split(" ")[0] ?? name))];
  if (!known.includes(first)) throw unknownCommand([first], known);
  const isGroup = !commands.some(({ name }) => name === first);
  if (!isGroup || second === undefined || second.startsWith("-")) return;
  const below = subcommands(first, commands);
  if (!below.includes(second)) throw unknownCommand([first, second], below);
}

function subcommands(first: string, commands: readonly CommandSpec[]): string[] {
  return commands.flatMap(({ name }) => (name.startsWith(`${first} `) ? [name.split(" ")[1] ?? ""] : []));
}

/** Commander takes a negative number for an operand; no command has one, so it is a wrong option unless it follows `--`. */
function checkNumbers(args: readonly string[], { name, passThrough }: CommandSpec, command: Command): void {
  if (passThrough === true) return;
  const end = args.indexOf("--");
  const before = end < 0 ? args : args.slice(0, end);
  const number = before.find((each) => /^-\d/.test(each) && command.args.includes(each));
  if (number !== undefined) throw new UsageError(`parley ${name}: unknown option '${number}'`, helpLine(name));
}

function checkOperands({ name, operands = [], passThrough }: CommandSpec, { args, commands }: Command): void {
  // The last operand may be repeated: `<file>…`.
  if (operands.at(-1)?.endsWith("…") === true) return;
  const extra = args[operands.length];
  if (extra === undefined || passThrough === true) return;
  if (commands.length > 0)
    throw unknownCommand(
      [name, extra],
      commands.map((each) => each.name()),
    );
  const quote = operands.length === 1 ? " Quote a text that contains spaces." : "";
  throw new UsageError(`parley ${name}: unexpected argument "${extra}".${quote}`, helpLine(name));
}

function unknownCommand(words: readonly string[], known: readonly string[]): UsageError {
  const near = nearestName(words.at(-1) ?? "", known);
  const hint = near === null ? "" : ` Did you mean "${["parley", ...words.slice(0, -1), near].join(" ")}"?`;
  const fix = near === null ? `Commands: ${known.join(", ")}.` : undefined;
  return new UsageError(`There is no command "${["parley", ...words].join(" ")}".${hint}`, fix);
}

/** Moves the words of the command to the front, because commander expects its options after it. */
function commandFirst(args: readonly string[], commands: readonly CommandSpec[]): string[] {
  const withValue = commands.flatMap(({ options }) =>
    Object.entries(options).flatMap(([name, { type, short }]) => (type === "string" ? [{ name, short }] : [])),
  );
  const long = new Set(withValue.map(({ name }) => `--${name}`));
  const short = new Set(withValue.map((each) => each.short));
  // Of combined short options, `-fn`, only the last one can take the next argument.
  const takesNext = (arg: string) => long.has(arg) || (/^-[a-z]+$/.test(arg) && short.has(arg.at(-1)));
  const places: number[] = [];
  for (let at = 0; at < args.length && args[at] !== "--"; at++) {
    if (takesNext(args[at] ?? "")) at++;
    else if (args[at]?.startsWith("-") === false) places.push(at);
  }
  const words = places.map((at) => args[at] ?? "");
  if (words[0] === "help") return [...words.slice(1), "--help"];
  const isNested = commands.some(({ name }) => name === words.slice(0, 2).join(" "));
  const front = places.slice(0, isNested ? 2 : 1);
  if (commands.some(({ name, passThrough }) => passThrough === true && name === args[0])) return [...args];
  return [...front.map((at) => args[at] ?? ""), ...args.filter((_, at) => !front.includes(at))];
}

function usageError(error: CommanderError, args: readonly string[], commands: readonly CommandSpec[]): UsageError {
  const [first] = args;
  const message = error.message.replace(/^error: /, "").replaceAll(/\s+/g, " ");
  const known = [...new Set(commands.map(({ name }) => name.split(" ")[0] ?? name))];
  const below = first === undefined ? [] : subcommands(first, commands);
  if (first === undefined || first.startsWith("-")) {
    const problem = message.includes("Did you mean") ? `parley: ${message}` : "Name a command.";
    return new UsageError(problem, "parley --help lists the commands.");
  }
  if (error.code === "commander.help")
    return new UsageError(`parley ${first} needs a subcommand: ${below.join(", ")}.`);
  const unknown = /unknown command '(.*?)'/.exec(error.message)?.[1];
  if (unknown !== undefined)
    return unknown === first ? unknownCommand([first], known) : unknownCommand([first, unknown], below);
  const nested = args.slice(0, 2).join(" ");
  const name = commands.some((each) => each.name === nested) ? nested : first;
  return new UsageError(`parley ${name}: ${message}${choiceHint(message)}`, helpLine(name));
}

/** Suggests the closest choice when commander's message names a wrong value and the choices. */
function choiceHint(message: string): string {
  const [, given = "", choices] = /argument '(.*)' is invalid\. Allowed choices are (.*)\.$/.exec(message) ?? [];
  const near = choices === undefined ? null : nearestName(given, choices.split(", "));
  return near === null ? "" : ` Did you mean ${near}?`;
}

function helpLine(name: string): string {
  return `parley ${name} --help shows its usage.`;
}
