// Generates docs/commands.md: every slash command with its usage and required roles, from the access table.
import { slashCommands } from "@parley/contracts";
import { accessRules, type AccessRule } from "../operations/access.ts";

/** The whole page. */
export function commandsDocument(): string {
  return `${[
    "# Commands and roles",
    "Generated from `services/channel-gateway/src/operations` and `packages/contracts/src/operations` by `npm run docs`; a test fails when it is stale.",
    "A command is a message that begins with a slash. The gateway executes it immediately, without waiting for the agent. Commands are the same in every channel, in the HTTP and WebSocket API and in the CLI.",
    [
      "The sender's role decides which commands they may use:",
      "",
      "- *owner*: a contact in `owners` of the account, or approved with `--role owner`; also every caller with the API token.",
      "- *user*: a contact in `allow_from`, or approved with `pairing approve` (the default role).",
      '- *guest*: every other person in a listed group, and senders of direct messages where `dm_policy = "open"`.',
    ].join("\n"),
    "A direct conversation has its own session, so its person may start a new one, name it and copy it. A group shares one session, which guests cannot change. The columns name the minimum role; a higher role includes the lower ones. What the *agent* may do for each role is in [configuration.md](configuration.md#workspaces).",
    accessTable(),
    "## Usage",
    usageTable(),
  ].join("\n\n")}\n`;
}

function accessTable(): string {
  const keyOf = ({ command, direct, group, condition }: AccessRule) => [command, direct, group, condition].join(" ");
  const rows = [...Map.groupBy(accessRules, keyOf).values()].map((rules) => {
    const [{ direct, group, condition = "" } = { direct: "owner", group: "owner" }] = rules;
    return `| ${rules.flatMap(formsOf).toSorted().join(", ")} | ${direct} | ${group} | ${cell(condition)} |`;
  });
  return ["| command | direct conversation | group | condition |", "| --- | --- | --- | --- |", ...rows].join("\n");
}

function formsOf({ command, forms = [""] }: AccessRule): string[] {
  return forms.map((form) => `\`${form === "" ? command : `${command} ${form}`}\``);
}

function usageTable(): string {
  const rows = slashCommands.map(({ usage, summary }) => `| \`${cell(usage)}\` | ${cell(summary)} |`);
  return ["| usage | what it does |", "| --- | --- |", ...rows].join("\n");
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|");
}
