// The words of a simple command, as rules see them. Pure.
import type { CommandArgument, Word, WordPart } from "unbash";

export interface ShellWord {
  /** What the program gets, when that is known; else the word as it is written. */
  value: string;
  /** Nothing in it is replaced when the command runs. */
  literal: boolean;
}

/** One program that a command line starts, with all that is known of its arguments. */
export interface SimpleCommand {
  /** `NAME=value` before the program, as written. Without words: assignments that stay in the shell. */
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

/** The name of the program, without its folder; undefined when it is only known while the command runs. */
export function programOf(words: readonly ShellWord[]): string | undefined {
  const [first] = words;
  if (first === undefined || !first.literal) return undefined;
  return first.value.slice(first.value.lastIndexOf("/") + 1);
}

/**
 * One spelling for all that mean the same: words with anything but plain characters in quotes. So an argument that looks like
 * two words, or a pattern character that is meant as itself, is never taken for what it is not.
 */
export function canonicalText(command: SimpleCommand): string {
  return [...command.assignments, ...command.words.map(quoted)].join(" ");
}

/** All spellings a rule that forbids may mean: also without assignments, quotes and the program's folder. */
export function spellings(command: SimpleCommand): string[] {
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
  // `{}` means nothing to a shell, and people write it bare.
  if (!word.literal || word.value === "{}" || /^[\p{L}\p{N}_@%+=:,./^-]+$/u.test(word.value)) return word.value;
  return `'${word.value.replaceAll("'", String.raw`'\''`)}'`;
}

/** The text of a word that must be known to be believed. */
export function literalValue(word: Word | undefined): string | null {
  if (word === undefined) return null;
  const { value, literal: known } = toWord(word);
  return known ? value : null;
}
