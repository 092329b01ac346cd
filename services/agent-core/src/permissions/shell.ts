// Reads a command line: every program it starts, wherever that stands, and every file it redirects to. The parser is loaded
// with the first command that has to be read (15 ms, 6 MB): an agent without `exec` never pays for it.
import type { ParsedScript, Redirect, SyntaxNode } from "unbash";
import { hiddenInAssignment } from "./shell-programs.ts";
import { literalValue, programOf, toWord, type ShellWord, type SimpleCommand } from "./shell-words.ts";
import { unwrap } from "./shell-wrappers.ts";

export interface CommandReading {
  /** As the model wrote it. */
  source: string;
  commands: readonly SimpleCommand[];
  /** Files that redirections open; a path of null is only known while the command runs. */
  redirects: readonly { path: string | null; mode: "read" | "write" }[];
  /** A function of it calls itself. */
  recursiveFunction: boolean;
  /** Why a program in `commands` may start others, by its nature; null: none is known to. */
  launches: string | null;
  /** Why something may run that is not in `commands`; null: it is complete. */
  hidden: string | null;
}

/** Wrappers in wrappers, and scripts in scripts; deeper than anything people write. */
const maxDepth = 8;
/** Levels of the syntax tree that are looked into: far below what the stack holds. */
const maxLevels = 200;
/** A longer line is a program, not a command: nobody judges it by rules. */
const maxCharacters = 20_000;
/** Blanks and line ends that a shell and this parser may not agree about, and what hides text from a reader. */
const strange = /[^\S \t\n]|(?![\t\n])\p{Cc}|\p{Bidi_Control}/u;

const assigning = new Set(["=", "+=", "-=", "*=", "/=", "%=", "&=", "^=", "|=", "<<=", ">>="]);

/** Reads a command line; one that cannot be read is a reading that hides something, never an error. */
export async function readCommand(source: string): Promise<CommandReading> {
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
    if (text.length > maxCharacters) return hide("it is too long to be read");
    if (strange.test(text)) return hide("it contains characters that are not seen");
    if (depth > maxDepth) return hide("it is nested too deeply");
    visit(parse(text), text, depth, 0);
  };
  const addCommand = (command: SimpleCommand, depth: number): void => {
    if (depth > maxDepth) return hide("it is nested too deeply");
    commands.push(command);
    command.assignments.forEach(checkAssignment);
    if (command.words[0]?.literal === false) hide("the program is only known while the command runs");
    for (const inner of unwrap(command.words)) {
      if (inner.kind === "launcher") launches ??= `${inner.why} is not known`;
      else if (inner.kind === "hidden") hide(`${inner.why} is not known`);
      else if (inner.kind === "script") readScript(inner.source, depth + 1);
      else addCommand({ assignments: [], words: inner.words }, depth + 1);
    }
  };
  const checkAssignment = (text: string): void => {
    const why = hiddenInAssignment(text);
    if (why !== null) hide(`${why} is not known`);
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
        const words: ShellWord[] = [...(node.name === undefined ? [] : [node.name]), ...node.args].map(toWord);
        const assignments = node.prefix.flatMap((each) => (each.type === "Assignment" ? [each.text] : []));
        if (words.length + assignments.length > 0) addCommand({ assignments, words }, depth);
        break;
      }
      // Both evaluate their operands, array subscripts with commands included.
      case "TestCommand":
        if (/\[[^\]]*(?:\$\(|`)/s.test(text.slice(node.pos, node.end).slice(2, -2))) hide("a subscript is not known");
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
        // `${x@P}` runs what x holds, `${!x}` what x names.
        if (node.operation?.type === "Transform" || node.operation?.type === "Unknown" || node.prefix === "!") {
          hide("what a variable stands for is not known");
        }
        break;
      case "CommandExpansion":
      case "ProcessSubstitution":
      case "ArithmeticCommandExpansion":
        if (node.script === undefined) hide("a substitution cannot be read");
        break;
      case "ArithmeticExpansion":
        if (node.expression === undefined) hide("arithmetic cannot be read");
        break;
      case "AnsiCQuoted":
        // A shell without this kind of quotes ends it at the escaped quote.
        if (node.text.includes("\\'")) hide("its quotes mean different things to different shells");
        break;
      case "ExtendedGlob":
        hide("its patterns mean different things to different shells");
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
    if (node.operator === "<" && path === null) hide("the file it reads is only known while it runs");
    if (path !== null && /^\/dev\/(?:tcp|udp)\//.test(path)) hide("it opens a connection");
    if (path === "/dev/null" || path === "/dev/stdout" || path === "/dev/stderr") return;
    redirects.push({ path, mode: node.operator === "<" ? "read" : "write" });
  };

  try {
    readScript(source, 0);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    hide("it is nested too deeply");
  }
  if (commands.length + redirects.length === 0) hide("it names no program");
  return { source, commands, redirects, recursiveFunction, launches, hidden };
}

const unknownWord: ShellWord = { value: "…", literal: false };

function readErrors(script: ParsedScript, hide: (why: string) => void): void {
  const [error] = script.errors ?? [];
  if (error !== undefined) hide(`it is not a complete command line (${error.message})`);
}
