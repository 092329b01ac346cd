// Generates docs/channels.md from the entries of the channels: what each can do, how an account is set up, and its settings.
import { z } from "zod";
import { secretsOf, channelEntries } from "../channels/index.ts";
import { peopleSettings, type ChannelEntry, type SendRate } from "../channels/entry.ts";

/** The whole page. */
export function channelsDocument(): string {
  return `${[
    "# Channels",
    "Generated from `packages/contracts/src/channels` by `npm run docs`; a test fails when it is stale.",
    "A channel is a chat platform. Each account on it is a table `[channels.<channel>.<account>]` in `parley.toml`, which names the environment variables of its secrets; [configuration.md](configuration.md#people) describes who may write to it. `parley config check` reports missing variables. An account that cannot work is disabled with its reason, shown by `parley status`, and does not affect the others.",
    "## Adding an account",
    adding,
    "## What each channel can do",
    capabilityTable(),
    ...channelEntries.map(section),
    newChannel,
  ].join("\n\n")}\n`;
}

const adding = `\`parley channels add <channel>\` adds an account to the running cluster, without a file and a restart: it shows the steps below, asks for the secrets, lets the platform confirm them, and admits you as owner with the code that your first message receives. \`--setting name=value\` sets what the tables below list. The same over HTTP: \`POST /api/channels\`.

- Settings of added accounts are in the database, and every gateway starts them within 5 s. \`parley channels list\` shows which accounts are added and which are in \`parley.toml\`; of two with the same name, the one in the file applies.
- A secret that you enter is a file with mode 0600 in the folder \`PARLEY_SECRETS_DIR\` of the gateways, with the name of its variable; \`npm start\` sets the folder to \`secrets\` in the data folder. Gateways on several machines need a shared folder or volume. Without the folder, put the secret in an environment variable of the gateways and name it: \`--setting token_env=PARLEY_CHANNEL_…\`.
- \`parley channels add\` with the name of an added account changes it: its settings are replaced, and a secret that you do not enter again stays. \`parley channels remove\` ends its connection, deletes its stored secrets and drops its waiting texts.
- A webhook's \`reply_to\` can name only an account in \`parley.toml\`.`;

const newChannel = `## A new channel

1. Describe it in \`packages/contracts/src/channels/<name>.ts\` and add the entry to the list in \`index.ts\`. Settings, \`parley config check\`, secrets and this page follow.
2. Write the adapter in \`services/channel-gateway/src/channels/<name>\`; its \`index.ts\` exports \`createAdapter\`. The interface is \`channel.ts\` there. [examples/channel](../examples/channel) is a complete adapter without a library.
3. Run the list of \`packages/testing/src/channels/conformance.ts\` against it in \`services/channel-gateway/test/conformance.test.ts\`.

An adapter turns updates of the platform into drafts and sends one message at a time. The host authorizes people, runs commands and pressed buttons, splits and renders answers, keeps order and rates, and continues long answers after a crash.`;

const yes = (value: boolean): string => (value ? "yes" : "no");

function capabilityTable(): string {
  const rows = channelEntries.map(({ title, capabilities }) => {
    const { text, files, typing, actions, supportsIdempotentSend, commandPrefix, preview, messagesPerPage } =
      capabilities;
    const page = messagesPerPage === undefined ? "" : `; ${messagesPerPage}, then \`${commandPrefix ?? "/"}more\``;
    const length = `${text.maxLength} ${units[text.lengthUnit]}${text.singleLine === true ? ", one line each" : ""}${page}`;
    const prefix = commandPrefix === undefined ? "`/`" : `\`${commandPrefix}\` or \`/\``;
    const shown = preview === undefined ? "no" : `every ${preview.everyMs / 1_000} s`;
    return [
      title,
      text.format,
      length,
      prefix,
      yes(files),
      yes(actions),
      yes(typing),
      shown,
      yes(supportsIdempotentSend),
    ];
  });
  return table(
    [
      "channel",
      "text format",
      "longest message",
      "commands",
      "files",
      "buttons",
      "typing",
      "preview",
      "drops repeated sends",
    ],
    rows,
  );
}

const units = { utf16: "UTF-16 units", bytes: "bytes", code_points: "characters" } as const;

function section(entry: ChannelEntry): string {
  const { name, title, setUp, permissions, secrets, capabilities } = entry;
  const named = secretsOf(entry, {});
  return [
    `## ${title}`,
    setUp.map((step, index) => `${index + 1}. ${step}`).join("\n"),
    `The account needs these permissions on the platform:\n\n${permissions.map((each) => `- ${each}`).join("\n")}`,
    ...(secrets.length === 0
      ? []
      : [
          `Secrets, each in an environment variable that a setting of \`[channels.${name}.<account>]\` names:`,
          table(
            ["setting", "secret", "required"],
            named.map(({ setting, purpose, required }) => [`\`${setting}\``, purpose, requirement(required)]),
          ),
        ]),
    "Other settings:",
    table(["setting", "values", "default"], settingRows(entry)),
    ...ratesText(capabilities.rates),
  ].join("\n\n");
}

function requirement(required: true | { setting: string; value: string } | undefined): string {
  if (required === undefined) return "no";
  return required === true ? "yes" : `if \`${required.setting} = "${required.value}"\``;
}

interface JsonProperty {
  type?: string;
  enum?: string[];
  default?: unknown;
  items?: { type?: string };
}

/** The settings of an entry without those of every channel and those that name secrets. */
function settingRows({ settings, secrets }: ChannelEntry): string[][] {
  const hidden = new Set([...Object.keys(peopleSettings), ...secrets.map(({ setting }) => setting)]);
  const schema = z.toJSONSchema(settings, { io: "input" }) as {
    properties?: Record<string, JsonProperty>;
    required?: string[];
  };
  return Object.entries(schema.properties ?? {})
    .filter(([name]) => !hidden.has(name))
    .map(([name, { type = "any", enum: values, default: value }]) => {
      const kind = values === undefined ? type : values.map((each) => `\`${each}\``).join(", ");
      const fallback = schema.required?.includes(name) === true ? "required" : value === undefined ? "" : code(value);
      return [`\`${name}\``, kind, fallback];
    });
}

function ratesText(rates: ChannelEntry["capabilities"]["rates"]): string[] {
  if (rates === undefined) return [];
  const text = ({ burst, everyMs }: SendRate) => `${burst} at once, then one every ${everyMs / 1_000} s`;
  const lines = [
    ...(rates.account === undefined ? [] : [`- an account: ${text(rates.account)}`]),
    ...(rates.conversations ?? []).map((each, index) => {
      const any = index === 0 ? "a conversation" : "any other conversation";
      return `- ${each.pattern === "" ? any : `a conversation whose id matches \`${each.pattern}\``}: ${text(each)}`;
    }),
  ];
  return [`Messages are sent at these rates, which all replicas share:\n\n${lines.join("\n")}`];
}

function code(value: unknown): string {
  return `\`${JSON.stringify(value)}\``;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n");
}
