// Predicts what a command line will probably change. Pure: it parses the line and runs nothing.
//
// Covered: targets of redirections, and the operands of `rm rmdir unlink shred truncate mv cp install ln touch mkdir tee chmod chown
// dd sed -i perl -i`: in lists, pipelines, loops and branches, after `cd`, `sudo`, `env`, `timeout` and the like, and in `sh -c '…'`.
// Not covered: paths that only the shell knows ($VARIABLES, $(substitutions)), and the effects of other programs: `git`, `tar`,
// `find -delete`, `make`, scripts, compilers.
import { forEachChild, parse, type Command, type Redirect, type SyntaxNode, type Word } from "unbash";
import { literal, named, whole, type NamedPath, type Scope } from "./shell-words.ts";

export type Change =
  /** This name. */
  | { kind: "name"; at: NamedPath }
  /** This name and everything below it. */
  | { kind: "tree"; at: NamedPath }
  /** These are placed at `to`, or inside it when it is a directory. */
  | { kind: "copy"; from: readonly NamedPath[]; to: NamedPath };

/** `directory`: the command's working directory, relative to the workspace. A line that cannot be parsed has no changes. */
export function predictChanges(command: string, directory: string): Change[] {
  const changes: Change[] = [];
  visit(parse(command), { directory: directory === "." ? "" : directory, depth: 0 }, changes);
  return changes;
}

const maxDepth = 50;
/** Nodes that run in a subshell: a `cd` in them has no effect outside. */
const ownShell = new Set(["Subshell", "CommandExpansion", "ProcessSubstitution", "Pipeline", "Coproc"]);
const writing = new Set([">", ">>", ">|", "&>", "&>>", "<>", ">&"]);

function visit(node: SyntaxNode, scope: Scope, changes: Change[]): void {
  if (scope.depth > maxDepth) return;
  const inner = ownShell.has(node.type) ? { ...scope } : scope;
  // The command's own operands are resolved against the scope in which it was called.
  forEachChild(node, (child) => visit(child, inner, changes));
  if (node.type === "Redirect") changes.push(...redirected(node, scope));
  if (node.type === "Command") runCommand(node, scope, changes);
}

function redirected(node: Redirect, scope: Scope): Change[] {
  if (!writing.has(node.operator) || node.target === undefined) return [];
  // `2>&1`: a descriptor, not a file.
  if (node.operator === ">&" && /^(\d+-?|-)$/.test(node.target.value)) return [];
  return named([node.target], scope).map((at) => ({ kind: "name", at }));
}

/** Prefix commands that only change how a command runs, with their options that take a value. */
const wrappers = new Map(
  Object.entries({
    sudo: { values: "ugpCh", operands: 0 },
    env: { values: "uCS", operands: 0 },
    command: { values: "", operands: 0 },
    builtin: { values: "", operands: 0 },
    exec: { values: "a", operands: 0 },
    nohup: { values: "", operands: 0 },
    nice: { values: "n", operands: 0 },
    ionice: { values: "cn", operands: 0 },
    stdbuf: { values: "ioe", operands: 0 },
    setsid: { values: "", operands: 0 },
    timeout: { values: "ks", operands: 1 },
  }),
);
const shells = new Set(["sh", "bash", "dash", "zsh", "ksh"]);

function runCommand(node: Command, scope: Scope, changes: Change[]): void {
  const words = [node.name, ...node.args].flatMap((word) => (word?.type === "Word" ? [word] : []));
  const [name, ...args] = unwrapped(words);
  if (name === undefined) return;
  const program = name.value.split("/").at(-1) ?? "";
  if (program === "cd" || program === "pushd") {
    const [target] = named(operandsOf(args, "").slice(0, 1), scope);
    scope.directory = target === undefined || target.pattern ? undefined : target.path;
  } else if (program === "popd" || program === "eval" || program === "source") {
    scope.directory = undefined;
  } else if (shells.has(program)) {
    const at = args.findIndex((word) => /^-[a-z]*c[a-z]*$/.test(word.value));
    const script = at < 0 ? undefined : args[at + 1];
    const text = script === undefined ? undefined : literal(script);
    if (text !== undefined) visit(parse(text.text), { ...scope, depth: scope.depth + 1 }, changes);
  } else {
    changes.push(...(programs.get(program)?.(args, scope) ?? []));
  }
}

function unwrapped(words: readonly Word[]): readonly Word[] {
  const wrapper = wrappers.get(words[0]?.value.split("/").at(-1) ?? "");
  if (wrapper === undefined) return words;
  let at = 1;
  for (; at < words.length; at++) {
    const text = words[at]?.value ?? "";
    if (text.startsWith("-")) {
      if (text.length === 2 && wrapper.values.includes(text.charAt(1))) at += 1;
    } else if (!/^[A-Za-z_]\w*=/.test(text)) break;
  }
  return unwrapped(words.slice(at + wrapper.operands));
}

type Program = (args: readonly Word[], scope: Scope) => Change[];

const names =
  (values = ""): Program =>
  (args, scope) =>
    named(operandsOf(args, values), scope).map((at) => ({ kind: "name", at }));

/** `first`: the first operand is no file (a mode, an owner). */
const trees =
  (first: boolean, recursive: RegExp | undefined): Program =>
  (args, scope) => {
    const below = recursive === undefined || args.some((word) => recursive.test(word.value));
    const byReference = args.some((word) => word.value.startsWith("--reference"));
    const operands = operandsOf(args, "").slice(first && !byReference ? 1 : 0);
    return named(operands, scope).map((at) => ({ kind: below ? "tree" : "name", at }));
  };

const copies =
  (values: string, moves: boolean): Program =>
  (args, scope) => {
    const into = args.findIndex((word) => word.value === "-t" || word.value === "--target-directory");
    const operands = operandsOf(into < 0 ? args : args.filter((_, at) => at !== into && at !== into + 1), values);
    const target = into < 0 ? operands.at(-1) : args[into + 1];
    const sources = named(into < 0 ? operands.slice(0, -1) : operands, scope);
    const [to] = target === undefined ? [] : named([target], scope);
    const removals = moves ? sources.map((at): Change => ({ kind: "tree", at })) : [];
    return to === undefined ? removals : [...removals, { kind: "copy", from: sources, to }];
  };

/** In-place editors: `script` matches the options that carry the script; without one, the first operand is the script. */
const inPlace =
  (inPlaceOption: RegExp, script: RegExp): Program =>
  (args, scope) => {
    if (!args.some((word) => inPlaceOption.test(word.value))) return [];
    let scripted = false;
    const operands: Word[] = [];
    for (let at = 0; at < args.length; at++) {
      const word = args[at];
      if (word === undefined) continue;
      if (script.test(word.value)) {
        scripted = true;
        if (/^-[A-Za-z]*[efE]$|^--(expression|file)$/.test(word.value)) at += 1;
      } else if (!word.value.startsWith("-")) operands.push(word);
    }
    return named(scripted ? operands : operands.slice(1), scope).map((at) => ({ kind: "name", at }));
  };

const programs = new Map<string, Program>(
  Object.entries({
    rm: trees(false, undefined),
    rmdir: names(),
    unlink: names(),
    shred: names("ns"),
    truncate: names("sr"),
    touch: names("drt"),
    mkdir: names("m"),
    tee: names(),
    chmod: trees(true, /^-[A-Za-z]*R|^--recursive$/),
    chown: trees(true, /^-[A-Za-z]*R|^--recursive$/),
    mv: copies("S", true),
    cp: copies("S", false),
    install: copies("gmoS", false),
    ln: copies("S", false),
    sed: inPlace(/^-[nEersuz]*i|^--in-place/, /^-[A-Za-z]*[ef]|^--(expression|file)/),
    perl: inPlace(/^-[A-Za-z0-9]*i/, /^-[A-Za-z]*[eE]$/),
    dd: outputFile,
  }),
);

function outputFile(args: readonly Word[], scope: Scope): Change[] {
  return args.flatMap((word) => {
    const text = word.value.startsWith("of=") ? literal(word) : undefined;
    const at = text === undefined ? undefined : whole({ ...text, text: text.text.slice(3) }, scope);
    return at === undefined ? [] : [{ kind: "name" as const, at }];
  });
}

/** Words that are not options; `values`: letters of the short options that take the next word. */
function operandsOf(args: readonly Word[], values: string): Word[] {
  const operands: Word[] = [];
  let options = true;
  for (let at = 0; at < args.length; at++) {
    const word = args[at];
    if (word === undefined) continue;
    if (options && word.value === "--") options = false;
    else if (!options || !word.value.startsWith("-") || word.value === "-") operands.push(word);
    else if (word.value.length === 2 && values.includes(word.value.charAt(1))) at += 1;
  }
  return operands;
}
