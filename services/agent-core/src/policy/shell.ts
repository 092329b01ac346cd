// Parses a command line: every program it starts, at any nesting, and every file it redirects. The parser (15 ms, 6 MB) is loaded on
// first use, so that an agent without `exec` does not need it.
import type { ParsedScript, Redirect, SyntaxNode } from "unbash";
import { hiddenInAssignment } from "./shell-programs.ts";
import { literalValue, programOf, toWord, type ShellWord, type SimpleCommand } from "./shell-words.ts";
import { unwrapCommand } from "./shell-wrappers.ts";

export interface ParsedCommand {
  /** The command line as written by the model. */
  source: string;
  commands: readonly SimpleCommand[];
  /** Files that redirections open; a null path is known only at run time. */
  redirects: readonly { path: string | null; mode: "read" | "write" }[];
  /** Whether one of its functions calls itself. */
  recursiveFunction: boolean;
  /** Why a program in `commands` may start others, for example `make`; null if none is known to. */
  launches: string | null;
  /** Why programs that are not in `commands` may run; null if `commands` is complete. */
  hidden: string | null;
}

/** Maximum nesting of wrappers and scripts; people write less. */
const maxDepth = 8;
/** Maximum depth of the syntax tree; far below the stack limit. */
const maxLevels = 200;
/** Longer command lines are not parsed: rules cannot usefully cover them. */
const maxCharacters = 20_000;
/** White space that shells and this parser may interpret differently, and characters that hide text. */
const strange = /[^\S \t\n]|(?![\t\n])\p{Cc}|\p{Bidi_Control}/u;

const assigning = new Set(["=", "+=", "-=", "*=", "/=", "%=", "&=", "^=", "|=", "<<=", ">>="]);

/** Parses a command line. Never fails: a result for an unparsable line has `hidden` set. */
export async function parseCommand(source: string): Promise<ParsedCommand> {
  const { forEachChild, parse } = await import("unbash");
  const commands: SimpleCommand[] = [];
  const redirects: { path: string | null; mode: "read" | "write" }[] = [];
  let hidden: string | null = null;
  let launches: string | null = null;
  let recursiveFunction = false;
  const hide = (why: string): void => {
    hidden ??= why;
  };

  const readScript = (text: string, depth: number): void => {
    if (text.length > maxCharacters) return hide("it is too long to be parsed");
    if (strange.test(text)) return hide("it contains invisible characters");
    if (depth > maxDepth) return hide("it is nested too deeply");
    visit(parse(text), text, depth, 0);
  };
  const addCommand = (command: SimpleCommand, depth: number): void => {
    if (depth > maxDepth) return hide("it is nested too deeply");
    commands.push(command);
    command.assignments.forEach(checkAssignment);
    if (command.words[0]?.literal === false) hide("the program is known only at run time");
    for (const inner of unwrapCommand(command.words)) {
      if (inner.kind === "launcher") launches ??= `${inner.why} cannot be determined`;
      else if (inner.kind === "hidden") hide(`${inner.why} cannot be determined`);
      else if (inner.kind === "script") readScript(inner.source, depth + 1);
      else addCommand({ assignments: [], words: inner.words }, depth + 1);
    }
  };
  const checkAssignment = (text: string): void => {
    const why = hiddenInAssignment(text);
    if (why !== null) hide(`${why} cannot be determined`);
  };
  const addAssignment = (text: string): void => {
    commands.push({ assignments: [text], words: [] });
  };

  const visit = (node: SyntaxNode, text: string, depth: number, level: number): void => {
    if (level > maxLevels) return hide("it is nested too deeply");
    switch (node.type) {
      case "Script":
        readErrors(node, hide);
        break;
      case "Command": {
        const written: ShellWord[] = [...(node.name === undefined ? [] : [node.name]), ...node.args].map(toWord);
        // The parser takes every `time` for the keyword; before an option other than `-p` it is the program.
        const words = written[0]?.value.startsWith("-") === true ? [timeProgram, ...written] : written;
        const assignments = node.prefix.flatMap((each) => (each.type === "Assignment" ? [each.text] : []));
        if (words.length + assignments.length > 0) addCommand({ assignments, words }, depth);
        break;
      }
      // Both evaluate their operands, array subscripts with commands included.
      case "TestCommand":
        if (/\[[^\]]*(?:\$\(|`)/s.test(text.slice(node.pos, node.end).slice(2, -2)))
          hide("an array subscript runs a command");
        addCommand({ assignments: [], words: [{ value: "[[", literal: true }, unknownWord] }, depth);
        break;
      case "ArithmeticCommand":
      case "ArithmeticFor":
        addCommand({ assignments: [], words: [{ value: "((", literal: true }, unknownWord] }, depth);
        break;
      case "For":
      case "Select":
        addAssignment(`${node.name.value}=…`);
        break;
      case "ArithmeticBinary":
        if (assigning.has(node.operator)) addAssignment("((…))=…");
        break;
      case "ArithmeticUnary":
        if (node.operator === "++" || node.operator === "--") addAssignment("((…))=…");
        break;
      case "ParameterExpansion":
        if (node.operation?.type === "Default" && node.operation.operator.endsWith("=")) {
          addAssignment(`${node.parameter}=…`);
        }
        // `${x@P}` runs the content of x, `${!x}` expands the variable that x names.
        if (node.operation?.type === "Transform" || node.operation?.type === "Unknown" || node.prefix === "!") {
          hide("the value of a variable cannot be determined");
        }
        break;
      case "CommandExpansion":
      case "ProcessSubstitution":
      case "ArithmeticCommandExpansion":
        if (node.script === undefined) hide("a substitution cannot be parsed");
        break;
      case "ArithmeticExpansion":
        if (node.expression === undefined) hide("an arithmetic expression cannot be parsed");
        break;
      case "AnsiCQuoted":
        // A shell without ANSI-C quoting ends the string at the escaped quote.
        if (node.text.includes("\\'")) hide("shells interpret its quotes differently");
        break;
      case "ExtendedGlob":
        hide("shells interpret its patterns differently");
        break;
      case "Redirect":
        addRedirect(node);
        break;
      default:
        break;
    }
    const before = commands.length;
    forEachChild(node, (child) => visit(child, text, depth, level + 1));
    if (node.type === "Function") {
      const name = node.name.value;
      recursiveFunction ||= commands.slice(before).some(({ words }) => programOf(words) === name);
    }
  };
  const addRedirect = (node: Redirect): void => {
    if (node.descriptor?.type === "FileDescriptorVariable") addAssignment(`${node.descriptor.name}=…`);
    const path = literalValue(node.target);
    const copies = node.operator === ">&" || node.operator === "<&";
    if (copies && path !== null && /^(?:\d+-?|-)$/.test(path)) return;
    if (node.operator === "<" && path === null) hide("the file it reads is known only at run time");
    if (path !== null && /^\/dev\/(?:tcp|udp)\//.test(path)) hide("it opens a network connection");
    if (path === "/dev/null" || path === "/dev/stdout" || path === "/dev/stderr") return;
    redirects.push({ path, mode: node.operator === "<" ? "read" : "write" });
  };

  try {
    readScript(source, 0);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    hide("it is nested too deeply");
  }
  if (commands.length + redirects.length === 0) hide("it contains no program");
  return { source, commands, redirects, recursiveFunction, launches, hidden };
}

const timeProgram: ShellWord = { value: "time", literal: true };
const unknownWord: ShellWord = { value: "…", literal: false };

function readErrors(script: ParsedScript, hide: (why: string) => void): void {
  const [error] = script.errors ?? [];
  if (error !== undefined) hide(`it is not a complete command line (${error.message})`);
}

/** Programs without an option that writes a file, sends data or starts another program. */
const readers: ReadonlySet<string> = new Set([
  "basename",
  "cat",
  "cksum",
  "cmp",
  "cut",
  "df",
  "diff",
  "dirname",
  "du",
  "echo",
  "false",
  "grep",
  "head",
  "id",
  "ls",
  "md5sum",
  "nl",
  "pwd",
  "readlink",
  "realpath",
  "sha256sum",
  "stat",
  "tail",
  "tr",
  "true",
  "uname",
  "wc",
  "whoami",
]);

/** Whether every program of the line is known, only reads, and no redirection opens a file for writing or at run time. */
export function onlyReads({ commands, redirects, hidden, launches }: ParsedCommand): boolean {
  if (hidden !== null || launches !== null || commands.length === 0) return false;
  return redirects.every(({ path, mode }) => mode === "read" && path !== null) && commands.every(isReader);
}

/** A program with a folder in its name could be a file of the workspace; assignments change what programs do. */
function isReader({ assignments, words: [program] }: SimpleCommand): boolean {
  return assignments.length === 0 && program?.literal === true && readers.has(program.value);
}
