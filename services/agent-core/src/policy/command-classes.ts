// Command classes that deny and ask rules may use instead of a pattern, such as `exec(@recursive-delete)`. They match the effect of
// the parsed command, for any order and spelling of its options. Pure.
import type { CommandClass } from "@parley/contracts";
import { programOf, type ShellWord } from "./shell-words.ts";
import type { ParsedCommand } from "./shell.ts";

/** `maybe`: depends on a word that is known only at run time. */
export type ClassVerdict = "yes" | "maybe" | "no";

const blockDevice =
  /^\/dev\/(?:[shv]d[a-z]|xvd|nvme\d|mmcblk|mapper\/|dm-|md\d|loop\d|sr\d|nbd|disk\/|mem$|kmem$|port$|ram\d|zd\d)/;
const formatters =
  /^(?:mkfs(?:\..*)?|mke2fs|mkswap|mkdosfs|fdisk|sfdisk|cfdisk|gdisk|sgdisk|parted|wipefs|blkdiscard|badblocks|hdparm|cryptsetup|pvcreate)$/;
const copiers = new Set(["cp", "mv", "tee", "install", "shred", "truncate", "rsync", "ln", "ddrescue", "pv"]);
const powerPrograms = new Set(["shutdown", "reboot", "poweroff", "halt", "telinit", "kexec", "pm-suspend"]);
const powerVerbs =
  /^(?:poweroff|reboot|halt|kexec|suspend|hibernate|hybrid-sleep|suspend-then-hibernate|soft-reboot|rescue|emergency|exit)$/;

/** Whether any command in the line, at any nesting, belongs to the class. */
export function isInClass(name: CommandClass, command: ParsedCommand): ClassVerdict {
  switch (name) {
    case "recursive-delete":
      return strongest(command.commands.map(({ words }) => deletesRecursively(words)));
    case "block-device-write":
      return strongest([
        ...command.commands.map(({ words }) => writesDevice(words)),
        ...command.redirects.map(({ path, mode }) => yes(mode === "write" && path !== null && isDevice(path))),
      ]);
    case "power":
      return strongest([
        ...command.commands.map(({ words }) => switchesOff(words)),
        ...command.redirects.map(({ path }) => yes(path === "/proc/sysrq-trigger" || path === "/sys/power/state")),
      ]);
    case "fork-bomb":
      return yes(command.recursiveFunction);
    default:
      return name satisfies never;
  }
}

function strongest(verdicts: readonly ClassVerdict[]): ClassVerdict {
  return verdicts.includes("yes") ? "yes" : verdicts.includes("maybe") ? "maybe" : "no";
}

function yes(holds: boolean): ClassVerdict {
  return holds ? "yes" : "no";
}

function deletesRecursively(words: readonly ShellWord[]): ClassVerdict {
  const rest = words.slice(1);
  const values = rest.map(({ value }) => value);
  switch (programOf(words)) {
    case "rm":
    case "grm":
      return options(rest, isRecursive);
    case "rimraf":
    case "del-cli":
      return "yes";
    // find passes the files of a whole tree to rm.
    case "find":
    case "gfind":
    case "fd":
    case "fdfind":
      return yes(values.includes("-delete") || values.some((value) => /(?:^|\/)(?:rm|unlink|shred)$/.test(value)));
    case "git":
      return values.includes("clean") ? options(rest, (value) => /^-[^-]*[dx]/i.test(value)) : "no";
    case "rsync":
      return options(rest, (value) => value.startsWith("--del"));
    default:
      return "no";
  }
}

/** `-r` or `-R`, alone or combined, and every abbreviation of `--recursive`. */
function isRecursive(value: string): boolean {
  return /^-[^-]*[rR]/s.test(value) || (value.length > 2 && "--recursive".startsWith(value));
}

/** Options may be anywhere up to `--`, as in GNU programs. */
function options(words: readonly ShellWord[], matches: (value: string) => boolean): ClassVerdict {
  const end = words.findIndex(({ value }) => value === "--");
  const read = end < 0 ? words : words.slice(0, end);
  if (read.some(({ value }) => matches(value))) return "yes";
  // A word whose known beginning is not an option remains one operand, unless the shell splits it.
  return read.some(({ value, literal }) => !literal && /^["']?[$`{*?[…-]/.test(value)) ? "maybe" : "no";
}

function writesDevice(words: readonly ShellWord[]): ClassVerdict {
  const program = programOf(words) ?? "";
  const rest = words.slice(1);
  if (formatters.test(program)) return "yes";
  const target = (value: string) => isDevice(value.replace(/^(?:of|--[\w-]+)=/, ""));
  if (program === "dd") {
    const of = rest.filter(({ value }) => value.startsWith("of="));
    if (of.some(({ value }) => target(value))) return "yes";
    return rest.some(({ literal }) => !literal) ? "maybe" : "no";
  }
  if (!copiers.has(program)) return "no";
  return yes(rest.some(({ value }) => target(value)));
}

function isDevice(path: string): boolean {
  return blockDevice.test(path.replaceAll(/\/(?:\.?\/)+/g, "/"));
}

function switchesOff(words: readonly ShellWord[]): ClassVerdict {
  const rest = words.slice(1);
  const program = programOf(words) ?? "";
  if (powerPrograms.has(program)) return "yes";
  if (program === "init") return yes(rest.some(({ value }) => /^[06]$/.test(value)));
  if (program !== "systemctl" && program !== "loginctl") return "no";
  if (rest.some(({ value }) => powerVerbs.test(value) || /^(?:poweroff|reboot|halt)\.target$/.test(value)))
    return "yes";
  return rest.some(({ literal }) => !literal) ? "maybe" : "no";
}
