// Generates docs/reference/cli.md from the definitions of the commands.
import { commands } from "../../packages/cli/src/commands/index.ts";
import { code, table } from "./markdown.ts";

/** The names of all commands. */
export function commandNames(): string[] {
  return commands.map(({ name }) => name);
}

/** The whole page. */
export function cliDocument(): string {
  const sections = commands.map(({ name, summary, operands = [], details, options, examples }) => {
    const rows = Object.entries(options).map(([option, { short, value, about, choices }]) => {
      const long = `--${option}${value === undefined ? "" : ` ${value}`}`;
      const form = short === undefined ? long : `-${short}, ${long}`;
      return [code(form), choices === undefined ? about : `${about} (${choices.join(", ")})`];
    });
    const usage = ["parley", name, ...operands, ...(rows.length === 0 ? [] : ["[options]"])].join(" ");
    return [
      `## ${name}`,
      `${capitalized(summary)}.`,
      `\`\`\`sh\n${[usage, ...examples.filter((each) => each !== usage)].join("\n")}\n\`\`\``,
      ...(details === undefined ? [] : [`\`\`\`text\n${details}\n\`\`\``]),
      ...(rows.length === 0 ? [] : [table(["option", "meaning"], rows)]),
    ].join("\n\n");
  });
  return `${[
    "# Command line",
    "Generated from `packages/cli/src/commands` by `npm run docs`; a test fails when it is stale.",
    "In the folder of Parley, `npx parley` is the command. Exit codes: 0 success, 1 failure, 2 invalid usage, 3 a problem was found (`status`, `doctor`), 130 interrupted, 143 terminated.",
    ...sections,
  ].join("\n\n")}\n`;
}

function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
