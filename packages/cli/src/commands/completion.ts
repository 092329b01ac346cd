// Builds completion scripts from the command table. Pure.

import { exitCodes, UsageError } from "../io/io.ts";
import { helpOption, type OptionTable } from "../io/options.ts";
import type { CommandSpec } from "./command.ts";

const scripts: Readonly<Record<string, (commands: readonly CommandSpec[]) => string>> = {
  bash,
  zsh: (commands) => `#compdef parley\nautoload -U +X bashcompinit && bashcompinit\n${bash(commands)}`,
  fish,
};
const shells = Object.keys(scripts);

/** Null for another shell. */
export function completionScript(shell: string, commands: readonly CommandSpec[]): string | null {
  return Object.hasOwn(scripts, shell) ? (scripts[shell]?.(commands) ?? null) : null;
}

/** `commands`: all commands, this one included. */
export function completionCommand(commands: () => readonly CommandSpec[]): CommandSpec {
  return {
    name: "completion",
    summary: "print a completion script for your shell",
    operands: [shells.join("|")],
    options: {},
    examples: ["source <(parley completion bash)", "parley completion fish > ~/.config/fish/completions/parley.fish"],
    run: async ({ positionals: [shell = ""], io }) => {
      const script = completionScript(shell, commands());
      if (script === null) throw new UsageError(`Name a shell: ${shells.join(", ")}.`, "parley completion --help");
      io.stdout.write(script);
      return exitCodes.ok;
    },
  };
}

function firstWords(commands: readonly CommandSpec[]): string[] {
  return [...new Set(commands.map(({ name }) => name.split(" ")[0] ?? name))];
}

function below(first: string, commands: readonly CommandSpec[]): string[] {
  return commands.flatMap(({ name }) => (name.startsWith(`${first} `) ? [name.slice(first.length + 1)] : []));
}

function optionsOf({ options }: CommandSpec): OptionTable {
  return { ...options, ...helpOption };
}

function bash(commands: readonly CommandSpec[]): string {
  const cases = firstWords(commands).map((first) => {
    const all = commands.filter(({ name }) => name === first || name.startsWith(`${first} `));
    const flags = new Set(all.flatMap((command) => Object.keys(optionsOf(command)).map((name) => `--${name}`)));
    return `    ${first}) words="${below(first, commands).join(" ")}" flags="${[...flags].join(" ")}" ;;`;
  });
  const choices = choiceCases(commands).map(
    ([name, values]) => `    --${name}) COMPREPLY=( $(compgen -W "${values}" -- "$word") ); return ;;`,
  );
  return `# parley: completion for bash. Use it with: source <(parley completion bash)
_parley() {
  local word="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD-1]}" words="" flags=""
  case "$before" in
${choices.join("\n")}
    --home|--token-file) COMPREPLY=( $(compgen -f -- "$word") ); return ;;
  esac
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=( $(compgen -W "${[...firstWords(commands), "help"].join(" ")}" -- "$word") )
    return
  fi
  case "\${COMP_WORDS[1]}" in
${cases.join("\n")}
    help) words="${firstWords(commands).join(" ")}" ;;
  esac
  if [ "$COMP_CWORD" -ne 2 ]; then words=""; fi
  COMPREPLY=( $(compgen -W "$words $flags" -- "$word") )
}
complete -o default -F _parley parley
`;
}

function choiceCases(commands: readonly CommandSpec[]): [string, string][] {
  const found = new Map<string, string>();
  for (const { options } of commands) {
    for (const [name, { choices }] of Object.entries(options)) {
      if (choices !== undefined) found.set(name, choices.join(" "));
    }
  }
  return [...found];
}

function fish(commands: readonly CommandSpec[]): string {
  const lines = [
    "# parley: completion for fish. Keep it as ~/.config/fish/completions/parley.fish",
    "complete -c parley -f",
  ];
  for (const first of firstWords(commands)) {
    const command = commands.find(({ name }) => name === first);
    const about = command?.summary ?? below(first, commands).join(", ");
    lines.push(`complete -c parley -n __fish_use_subcommand -a ${first} -d ${quote(about)}`);
    for (const second of below(first, commands)) {
      const summary = commands.find(({ name }) => name === `${first} ${second}`)?.summary ?? "";
      lines.push(`complete -c parley -n "__fish_seen_subcommand_from ${first}" -a ${second} -d ${quote(summary)}`);
    }
  }
  for (const command of commands) {
    const words = command.name.split(" ");
    const seen = words.map((word) => `__fish_seen_subcommand_from ${word}`).join("; and ");
    for (const [name, spec] of Object.entries(optionsOf(command))) {
      const short = spec.short === undefined ? "" : ` -s ${spec.short}`;
      const values = spec.choices === undefined ? "" : ` -a ${quote(spec.choices.join(" "))}`;
      const value = spec.type === "string" ? ` -r${values}` : "";
      lines.push(`complete -c parley -n "${seen}" -l ${name}${short}${value} -d ${quote(spec.about)}`);
    }
  }
  return `${lines.join("\n")}\n`;
}

function quote(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}
