// Detects programs and builtins whose arguments start other programs in ways that cannot be parsed. Interpreters are listed only for
// code in their arguments; a script file is covered by rules for its interpreter. Pure.
import { programOf, type ShellWord } from "./shell-words.ts";

/** A rule that allows one of these programs does not allow the programs that it starts. */
const unread = new Set(
  [
    "parallel watch su script ssh busybox toybox unshare nsenter systemd-run",
    ". source alias hash enable complete compgen",
  ].flatMap((line) => line.split(" ")),
);
/** Programs that start others named in arguments, input or a file; a rule that allows one also allows those. */
const launchers = new Set(
  [
    "runuser pkexec mosh start-stop-daemon",
    "tmux screen dtach abduco at batch crontab make gmake ninja just rake entr expect gdb lldb valgrind xvfb-run dbus-run-session",
    "fakeroot proot firejail bwrap vi vim nvim view ex ed emacs less more man",
  ].flatMap((line) => line.split(" ")),
);
/** Options that pass code to an interpreter. */
const inlineCode: Readonly<Record<string, RegExp>> = {
  python: /^-[A-Za-z]*c/,
  perl: /^-[A-Za-z\d]*[eE]/,
  ruby: /^-[A-Za-z\d]*e/,
  node: /^(?:-[A-Za-z]*[ep]|--eval|--print|--require|-r|--import)/,
  php: /^-[A-Za-z]*[rBRE]/,
  lua: /^-[A-Za-z]*e/,
};
/** Options of interpreters whose argument is the next word: further options may follow it. */
const optionWithWord: Readonly<Record<string, RegExp>> = {
  python: /^-[A-Za-z]*[WX]$/,
  perl: /^-[A-Za-z\d]*I$/,
  ruby: /^-[A-Za-z\d]*[CEIr]$/,
  node: /^(?:-C|--conditions|--title)$/,
  php: /^-[A-Za-z]*[cdz]$/,
  lua: /^-l$/,
};
/** Options of other programs that name a program. */
const programOptions: Readonly<Record<string, RegExp>> = {
  tar: /^(?:--(?:to-c|check|use-c|rsh|info-s|new-v)|-[A-Za-z]*[IF])/,
  bsdtar: /^--use-c/,
  sort: /^--comp/,
  rsync: /^(?:--rsh|--rsync-path|-[A-Za-z]*e)/,
  scp: /^-[A-Za-z]*S/,
  zip: /^(?:-[A-Za-z]*TT|--unzip-command)/,
  mapfile: /^-[A-Za-z]*C/,
  readarray: /^-[A-Za-z]*C/,
};
const gitHides =
  /^(?:-c|--config-env.*|--exec-path=.*|--exec.*|-x.*|foreach|filter-branch|difftool|mergetool|--(?:upload|receive)-pack.*|-u|ext::.*|-O.*|--open-files-in-pager.*|!.*|alias\..*)$/s;
/** Builtins that evaluate array subscripts in their operands, including commands in the subscripts. */
const subscripts = new Set([
  "test",
  "[",
  "[[",
  "printf",
  "read",
  "unset",
  "declare",
  "typeset",
  "local",
  "export",
  "readonly",
  "let",
  "wait",
  "getopts",
]);
/** A subscript that contains a substitution: `a[$(rm x)]`. */
const subscript = /\[[^\]]*(?:\$|`)/s;
/** Variables that make a started program load or start another one. */
const loading =
  /^(?:PATH|BASH_ENV|ENV|LD_\w+|PROMPT_COMMAND|PS4|SHELLOPTS|BASHOPTS|BASH_FUNC_.*|GIT_\w*(?:SSH|EDITOR|PAGER|ASKPASS|DIFF|CONFIG)\w*|PAGER|EDITOR|VISUAL|LESSOPEN|NODE_OPTIONS|PERL5OPT|PYTHON(?:STARTUP|PATH)|RUBYOPT)\+?=/;

/**
 * Describes what the command may start without naming it; null if it is not known to start anything. `launcher`: a rule that allows
 * the program by name also allows the programs that it starts.
 */
export function hiddenIn(words: readonly ShellWord[]): { why: string; launcher: boolean } | null {
  const name = programOf(words);
  if (name === undefined) return null;
  const program = /^python[\d.]*$/.test(name) ? "python" : name;
  const rest = words.slice(1);
  if (unread.has(program) && rest.length > 0) return { why: `the program started by ${program}`, launcher: false };
  if (subscripts.has(program) && rest.some(({ value }) => subscript.test(value) || loading.test(value))) {
    return { why: "the program started by a subscript or a variable", launcher: false };
  }
  return launches(program, rest) ? { why: `the program started by ${program}`, launcher: true } : null;
}

function launches(program: string, rest: readonly ShellWord[]): boolean {
  if (launchers.has(program)) return rest.length > 0 || program.endsWith("make");
  if (inlineCode[program] !== undefined) return takesCode(program, rest);
  const option = programOptions[program];
  if (option !== undefined && rest.some(({ value }) => option.test(value))) return true;
  // The first word of tar may be options without a dash.
  if (program === "tar" && /^[A-Za-z]*[IF][A-Za-z]*$/.test(rest[0]?.value ?? "")) return true;
  if (program === "git") return rest.some(({ value }) => gitHides.test(value)) || bisects(rest);
  if (/^[gmn]?awk$/.test(program)) return awkHides(rest);
  return (program === "sed" || program === "gsed") && sedHides(rest);
}

/** The same for assignments, with or without a program. `text`: as written. */
export function hiddenInAssignment(text: string): string | null {
  if (loading.test(text)) return "the code loaded because of a variable";
  const value = text.slice(text.indexOf("=") + 1);
  return /^['"]/.test(value) && subscript.test(value) ? "an array subscript" : null;
}

function bisects(words: readonly ShellWord[]): boolean {
  const at = words.findIndex(({ value }) => value === "bisect");
  return at >= 0 && words[at + 1]?.value === "run";
}

function takesCode(program: string, words: readonly ShellWord[]): boolean {
  for (let index = 0; index < words.length; index += 1) {
    const { value, literal } = words[index] ?? { value: "", literal: true };
    if (!value.startsWith("-")) return false;
    if (!literal || inlineCode[program]?.test(value) === true) return true;
    if (optionWithWord[program]?.test(value) === true) index += 1;
  }
  return false;
}

function awkHides(words: readonly ShellWord[]): boolean {
  return words.some(
    ({ value, literal }, index) =>
      (!literal && index === 0) ||
      /^-[A-Za-z]*[fElie]|^--(?:file|exec|load|include)/.test(value) ||
      /system|\||getline|@|>/.test(value),
  );
}

/** Simple scripts that cannot start programs: addresses with p, d, q or =, and substitutions without `e` and `w`. */
const plainSed =
  /^(?:(?:(?:\d+|\$|\/[^/\\]*\/)(?:,(?:\+?\d+|\$|\/[^/\\]*\/))?)?!?(?:[pdq=]|s(?:\/(?:[^/\\]|\\.)*\/(?:[^/\\]|\\.)*\/|\|[^|\\]*\|[^|\\]*\||#[^#\\]*#[^#\\]*#|,[^,\\]*,[^,\\]*,)[gpiI\d]*)\s*;?\s*)*$/s;

function sedHides(words: readonly ShellWord[]): boolean {
  let scripts = 0;
  let takesScript = false;
  for (const { value, literal } of words) {
    if (takesScript || (scripts === 0 && !value.startsWith("-"))) {
      if (!literal || !plainSed.test(value)) return true;
      scripts += 1;
      takesScript = false;
    } else if (/^-[nErsuzi]*e$/.test(value) || value === "--expression") {
      takesScript = true;
    } else if (/^-[nErsuz]*[ef]|^--(?:exp|f)/.test(value)) {
      return true;
    }
  }
  return false;
}
