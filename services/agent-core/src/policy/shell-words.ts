// Words of a simple command in the form that rules match. Pure.
import type { CommandArgument, Word, WordPart } from "unbash";

export interface ShellWord {
  /** The value that the program receives, if known; otherwise the word as written. */
  value: string;
  /** The word contains no expansion. */
  literal: boolean;
}

/** One program that a command line starts, with its arguments as far as they are known. */
export interface SimpleCommand {
  /** `NAME=value` before the program, as written. If `words` is empty, the assignments affect the shell itself. */
  assignments: readonly string[];
  words: readonly ShellWord[];
}

function literal(value: string): ShellWord {
  return { value, literal: true };
}

export function toWord(word: CommandArgument): ShellWord {
  if (word.type === "Assignment") return { value: word.text, literal: false };
  const isLiteral = (word.parts ?? []).every(isLiteralPart) && !word.text.startsWith("~");
  return isLiteral ? literal(word.value) : { value: word.text, literal: false };
}

function isLiteralPart(part: WordPart): boolean {
  if (part.type === "DoubleQuoted") return part.parts.every((each) => each.type === "Literal");
  return part.type === "Literal" || part.type === "SingleQuoted";
}

/** The name of the program without its folder; undefined if it is known only at run time. */
export function programOf(words: readonly ShellWord[]): string | undefined {
  const [first] = words;
  if (first === undefined || !first.literal) return undefined;
  return first.value.slice(first.value.lastIndexOf("/") + 1);
}

/**
 * The canonical form of equivalent commands: words with special characters are quoted. So rules distinguish one argument from two
 * words, and a literal character from a pattern.
 */
export function canonicalText(command: SimpleCommand): string {
  return [...command.assignments, ...command.words.map(quoted)].join(" ");
}

/** All forms that a deny rule may match: also without assignments, quotes and the program's folder. */
export function equivalentForms(command: SimpleCommand): string[] {
  const { words } = command;
  const [first, ...rest] = words;
  const forms = [canonicalText(command), words.map(quoted).join(" "), words.map(({ value }) => value).join(" ")];
  const program = programOf(words);
  if (first !== undefined && program !== undefined && program !== first.value) {
    const short = [literal(program), ...rest];
    forms.push(short.map(quoted).join(" "), short.map(({ value }) => value).join(" "));
  }
  return forms.filter((form) => form !== "");
}

function quoted(word: ShellWord): string {
  // `{}` has no special meaning in a shell, and people write it unquoted.
  if (!word.literal || word.value === "{}" || /^[\p{L}\p{N}_@%+=:,./^-]+$/u.test(word.value)) return word.value;
  return `'${word.value.replaceAll("'", String.raw`'\''`)}'`;
}

/** The value of a word without expansions; null otherwise. */
export function literalValue(word: Word | undefined): string | null {
  if (word === undefined) return null;
  const { value, literal: known } = toWord(word);
  return known ? value : null;
}
