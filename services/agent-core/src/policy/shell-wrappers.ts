// Unwraps programs that run other programs, such as `sudo`, `xargs` and `bash -c`. A program that is not listed is matched by its own
// name only; a rule that allows it also allows the programs that it starts. Pure.
import { hiddenIn, hiddenInAssignment } from "./shell-programs.ts";
import { programOf, type ShellWord } from "./shell-words.ts";

export type UnwrappedCommand =
  /** Starts this command; further words may be known only at run time. */
  | { kind: "command"; words: readonly ShellWord[] }
  /** Passes this text to a shell. */
  | { kind: "script"; source: string }
  /** Starts other programs by design, as `make` does; a rule that allows it by name also allows those. */
  | { kind: "launcher"; why: string }
  /** Starts a program that cannot be determined. */
  | { kind: "hidden"; why: string };

interface Options {
  /** Letters of options without an argument. */
  flags: string;
  /** Letters of options with an argument: the rest of the word or the next word. */
  valued: string;
  /** Long options that, without `=`, take the next word. */
  longValued?: readonly string[];
  /** Number of operands between the options and the command, such as the duration of `timeout`. */
  skip?: number;
  /** Whether `NAME=value` may precede the command. */
  assignments?: boolean;
}

const wrappers: Readonly<Record<string, Options>> = {
  builtin: { flags: "", valued: "" },
  chroot: { flags: "", valued: "", skip: 1 },
  chrt: { flags: "abdfimorRv", valued: "TPD", skip: 1 },
  command: { flags: "pvV", valued: "" },
  doas: { flags: "nLs", valued: "uC" },
  env: { flags: "i0v", valued: "uC", longValued: ["--unset", "--chdir"], assignments: true },
  exec: { flags: "cl", valued: "a" },
  flock: { flags: "sexnuoFv", valued: "wE", skip: 1 },
  ionice: { flags: "t", valued: "cnpPu" },
  "ld.so": { flags: "", valued: "", longValued: ["--library-path", "--argv0", "--preload", "--audit"] },
  ltrace: { flags: "bcCfhiLrStTV", valued: "aAdeFlnopsuwx" },
  nice: { flags: "", valued: "n", longValued: ["--adjustment"] },
  nohup: { flags: "", valued: "" },
  prlimit: { flags: "", valued: "" },
  setpriv: { flags: "", valued: "", longValued: ["--reuid", "--regid", "--groups", "--inh-caps", "--bounding-set"] },
  setsid: { flags: "cfw", valued: "" },
  stdbuf: { flags: "", valued: "ioe", longValued: ["--input", "--output", "--error"] },
  sudo: {
    flags: "AbEHnPSisKkBv",
    valued: "ugChpTUrtDR",
    longValued: ["--user", "--group", "--host", "--prompt", "--chdir"],
    assignments: true,
  },
  strace: { flags: "cCdDfFhiknqrtTvVwxyYzZ", valued: "abeEIoOpPsSuUX" },
  taskset: { flags: "ac", valued: "", skip: 1 },
  time: { flags: "apqvV", valued: "fo" },
  timeout: { flags: "fpv", valued: "ks", longValued: ["--kill-after", "--signal"], skip: 1 },
  xargs: {
    flags: "0oprtx",
    valued: "adEILnPs",
    longValued: ["--max-args", "--max-procs", "--delimiter", "--arg-file"],
  },
};
/** The dynamic loader runs the program in its arguments. */
const loader = /^ld(?:-linux[\w.-]*|-musl[\w.-]*)?\.so[\d.]*$/;
const shells = new Set(["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "rbash"]);
/** Shells with another language: their code is not parsed. */
const otherShells = new Set(["fish", "csh", "tcsh"]);
const finders = new Set(["-exec", "-execdir", "-ok", "-okdir"]);
/** The commands, scripts and unknown programs that this command starts. */
export function unwrapCommand(words: readonly ShellWord[]): UnwrappedCommand[] {
  const program = programOf(words);
  if (program === undefined) return [];
  const rest = words.slice(1);
  if (shells.has(program)) return shell(rest);
  if (otherShells.has(program)) return isScriptFile(rest[0]) ? [] : [hidden("the input of a shell")];
  if (program === "eval") return rest.length === 0 ? [] : [script(rest)];
  if (program === "trap")
    return rest.length < 2 ? [] : [script(rest.slice(rest[0]?.value === "--" ? 1 : 0).slice(0, 1))];
  if (program === "find") return findCommands(rest);
  const unclear = hiddenIn(words);
  if (unclear !== null) return [{ kind: unclear.launcher ? "launcher" : "hidden", why: unclear.why }];
  const options = loader.test(program) ? wrappers["ld.so"] : wrappers[program];
  return options === undefined ? [] : wrapped(program, options, rest);
}

function wrapped(program: string, options: Options, words: readonly ShellWord[]): UnwrappedCommand[] {
  const found: UnwrappedCommand[] = [];
  const at = afterOptions(options, words);
  if (at === null) found.push(hidden(`the options of ${program}`));
  let start =
    at ??
    Math.max(
      0,
      words.findIndex(({ value }) => !value.startsWith("-")),
    );
  if (at !== null) start += options.skip ?? 0;
  while (options.assignments === true && /^\w+\+?=/.test(words[start]?.value ?? "")) {
    const why = hiddenInAssignment(words[start]?.value ?? "");
    if (why !== null) found.push(hidden(why));
    start += 1;
  }
  const inner = words.slice(start);
  if (inner.length === 0) return found;
  if (program === "flock" && /^(?:-[a-zA-Z]*c|--command)$/.test(inner[0]?.value ?? "")) {
    return [...found, inner.length < 2 ? hidden("the program started by flock") : script(inner.slice(1, 2))];
  }
  if (program !== "xargs") return [...found, { kind: "command", words: inner }];
  return [...found, { kind: "command", words: withInput(words.slice(0, start), inner) }];
}

/** The index of the first word that is not an option; null if an option is unknown. */
function afterOptions(options: Options, words: readonly ShellWord[]): number | null {
  let index = 0;
  for (;;) {
    const word = words[index];
    if (word === undefined || !word.value.startsWith("-") || word.value === "-") return index;
    if (!word.literal) return null;
    if (word.value === "--") return index + 1;
    if (word.value.startsWith("--")) {
      const valued = (options.longValued ?? []).includes(word.value);
      if (word.value.startsWith("--split-string") || !(valued || word.value.includes("="))) return null;
      index += valued ? 2 : 1;
      continue;
    }
    const letters = Array.from(word.value.slice(1));
    const valued = letters.findIndex((letter) => options.valued.includes(letter));
    const plain = valued < 0 ? letters : letters.slice(0, valued);
    // An unlisted option may take the command's first word as its argument.
    if (!plain.every((letter) => options.flags.includes(letter))) return null;
    index += valued >= 0 && valued === letters.length - 1 ? 2 : 1;
  }
}

/** `xargs` appends its input, or inserts it at the replacement string. */
function withInput(own: readonly ShellWord[], inner: readonly ShellWord[]): ShellWord[] {
  const flag = own.findIndex(({ value }) => value.startsWith("-I"));
  const replaced = flag < 0 ? undefined : own[flag]?.value.slice(2) || own[flag + 1]?.value;
  const marked = inner.map((word) => unknownWhere(word, replaced ?? "{}"));
  return [...marked, { value: "…", literal: false }];
}

function unknownWhere(word: ShellWord, text: string): ShellWord {
  return text !== "" && word.value.includes(text) ? { value: word.value, literal: false } : word;
}

function shell(words: readonly ShellWord[]): UnwrappedCommand[] {
  let takesCode = false;
  for (let index = 0; index < words.length; index++) {
    const word = words[index];
    if (word === undefined) break;
    const { value } = word;
    if (!word.literal && value.startsWith("-")) return [hidden("the options of a shell")];
    if (value.startsWith("--") && value.length > 2) {
      if (value === "--rcfile" || value === "--init-file") return [hidden("a shell's startup file")];
      continue;
    }
    if (/^[-+][A-Za-z]+$/.test(value)) {
      takesCode ||= value.startsWith("-") && value.includes("c");
      if (/[sil]/.test(value)) return [hidden("the input or startup file of a shell")];
      if (/[oO]$/.test(value)) index += 1;
      continue;
    }
    const operand = value === "--" || value === "-" ? words[index + 1] : word;
    if (operand === undefined) break;
    // Script files are not parsed: only a rule for the shell allows them.
    if (takesCode) return [script([operand])];
    return isInput(operand) ? [hidden("the input of a shell")] : [];
  }
  return [hidden("the input of a shell")];
}

function isScriptFile(word: ShellWord | undefined): boolean {
  return word !== undefined && word.literal && !word.value.startsWith("-") && !isInput(word);
}

/** Whether the file is the shell's standard input, another open file or the output of a command. */
function isInput({ value }: ShellWord): boolean {
  return value.startsWith("<(") || /^\/(?:dev\/(?:stdin|fd\/)|proc\/[^/]+\/fd\/)/.test(value);
}

function findCommands(words: readonly ShellWord[]): UnwrappedCommand[] {
  const found: UnwrappedCommand[] = [];
  words.forEach((word, index) => {
    if (!finders.has(word.value)) return;
    const rest = words.slice(index + 1);
    const end = rest.findIndex(({ value }) => value === ";" || value === "+");
    const inner = (end < 0 ? rest : rest.slice(0, end)).map((each) => unknownWhere(each, "{}"));
    if (inner.length > 0) found.push({ kind: "command", words: inner });
  });
  if (words.some((word) => !word.literal && /^["']?[$`]/.test(word.value))) found.push(hidden("an argument of find"));
  return found;
}

function script(words: readonly ShellWord[]): UnwrappedCommand {
  if (!words.every((word) => word.literal)) return hidden("a command that is assembled at run time");
  return { kind: "script", source: words.map(({ value }) => value).join(" ") };
}

function hidden(why: string): UnwrappedCommand {
  return { kind: "hidden", why };
}
