// Formats the --help texts. Pure.

import type { CommandSpec } from "./command.ts";
import { helpOption, type OptionTable } from "./options.ts";

export function overview(commands: readonly CommandSpec[]): string {
  const width = Math.max(...commands.map(({ name }) => name.length));
  const lines = commands.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`);
  return `parley: talk to the agent and manage a Parley deployment

usage: parley <command> [options]

${lines.join("\n")}

parley <command> --help shows details and examples. Data goes to standard output, everything else to standard error.
Exit codes: 0 ok, 1 error, 2 invalid usage, 3 unhealthy, 130 interrupted by Ctrl-C.
`;
}

export function commandHelp(command: CommandSpec): string {
  const operands = command.operands === undefined ? "" : ` ${command.operands}`;
  const parts = [`parley ${command.name}: ${command.summary}`, `usage: parley ${command.name} [options]${operands}`];
  if (command.details !== undefined) parts.push(command.details);
  parts.push(optionLines({ ...command.options, ...helpOption }));
  const title = command.examples.length === 1 ? "Example" : "Examples";
  parts.push([`${title}:`, ...command.examples.map((example) => `  ${example}`)].join("\n"));
  return `${parts.join("\n\n")}\n`;
}

function optionLines(table: OptionTable): string {
  const rows = Object.entries(table).map(([name, spec]) => {
    const short = spec.short === undefined ? "" : `-${spec.short}, `;
    const value = spec.value === undefined ? "" : ` ${spec.value}`;
    return { left: `${short}--${name}${value}`, right: spec.about };
  });
  const width = Math.max(...rows.map(({ left }) => left.length));
  return ["Options:", ...rows.map(({ left, right }) => `  ${left.padEnd(width)}  ${right}`)].join("\n");
}
