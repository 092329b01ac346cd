// Generates docs/channels.md from the entries of the channels: what each can do, how an account is set up, and its settings.
import { z } from "zod";
import { addingAccounts } from "../channels/adding-accounts.ts";
import { secretsOf, channelEntries } from "../channels/index.ts";
import { peopleSettings, type ChannelEntry, type SendRate, type SettingQuestion } from "../channels/entry.ts";

/** The whole page. */
export function channelsDocument(): string {
  return `${[
    "# Channels",
    "Generated from `packages/contracts/src/channels` by `npm run docs`; a test fails when it is stale.",
    "A channel is a chat platform. An account is one bot, number, nick or address there. Follow the numbered steps of the channel, then add the account as described next. An account that cannot work is disabled and does not affect the others; `npx parley channels list` shows the reason.",
    "## Adding an account",
    addingAccounts,
    "## What each channel can do",
    capabilityTable(),
    ...channelEntries.map(channelSection),
    newChannelSection,
  ].join("\n\n")}\n`;
}

const newChannelSection = `## A new channel

1. Describe it in \`packages/contracts/src/channels/<name>.ts\` and add the entry to the list in \`index.ts\`. Settings, \`npx parley config check\`, secrets and this page follow.
2. Write the adapter in \`services/channel-gateway/src/channels/<name>\`; its \`index.ts\` exports \`createAdapter\`. The interface is \`channel.ts\` there. [examples/channel](../examples/channel) is a complete adapter without a library.
3. Run the test cases of \`packages/testing/src/channels/conformance.ts\` against it in \`services/channel-gateway/test/conformance.test.ts\`.

An adapter turns updates of the platform into drafts and sends one message at a time. The host authorizes people, runs commands and pressed buttons, splits and renders answers, keeps order and rates, and continues long answers after a crash.`;

const yes = (value: boolean): string => (value ? "yes" : "no");

function capabilityTable(): string {
  const rows = channelEntries.map(({ title, capabilities }) => {
    const { text, files, typing, actions, supportsIdempotentSend, commandPrefix, preview, messagesPerPage } =
      capabilities;
    const page = messagesPerPage === undefined ? "" : `; ${messagesPerPage}, then \`${commandPrefix ?? "/"}more\``;
    const length = `${text.maxLength.toLocaleString("en")} ${units[text.lengthUnit]}${text.singleLine === true ? ", one line each" : ""}${page}`;
    const prefix = commandPrefix === undefined ? "`/`" : `\`${commandPrefix}\` or \`/\``;
    const previewText = preview === undefined ? "no" : `every ${preview.everyMs / 1_000} s`;
    return [
      title,
      yes(text.format !== "plain"),
      length,
      prefix,
      yes(files),
      yes(actions),
      yes(typing),
      previewText,
      yes(supportsIdempotentSend),
    ];
  });
  return table(
    [
      "channel",
      "bold, code and links",
      "longest message",
      "commands",
      "files",
      "buttons",
      "typing",
      "preview",
      "a repeated send is previewText once",
    ],
    rows,
  );
}

/** A character outside of the Basic Multilingual Plane, such as an emoji, counts as two where the unit is `utf16`. */
const units = { utf16: "characters", bytes: "bytes", code_points: "characters", sms_segments: "SMS segments" } as const;

function channelSection(entry: ChannelEntry): string {
  const { name, title, setUp, permissions, secrets, capabilities } = entry;
  const secretSettings = secretsOf(entry, {});
  return [
    `## ${title}`,
    `[${title}](channels/${name}.md): how conversations work there, and troubleshooting.`,
    setUp.map((step, index) => `${index + 1}. ${step}`).join("\n"),
    `Then \`npx parley channels add ${name}\` asks for ${askedSettings(entry)}.`,
    `The account needs these permissions on the platform:\n\n${permissions.map((each) => `- ${each}`).join("\n")}`,
    ...(secrets.length === 0
      ? []
      : [
          `Secrets, each in an environment variable that a setting of \`[channels.${name}.<account>]\` names:`,
          table(
            ["setting", "secret", "required"],
            secretSettings.map(({ setting, purpose, required }) => [`\`${setting}\``, purpose, requirement(required)]),
          ),
        ]),
    "Other settings ([what each means](reference/settings.md#channels)):",
    table(["setting", "values", "default"], settingRows(entry)),
    ...ratesText(capabilities.rates),
  ].join("\n\n");
}

/** What `channels add` asks for, by name. */
function askedSettings(entry: ChannelEntry): string {
  const condition = ({ onlyIf }: Pick<SettingQuestion, "onlyIf">) =>
    onlyIf === undefined ? "" : ` (if \`${onlyIf.setting} = "${onlyIf.value}"\`)`;
  const settings = (entry.questions ?? []).map((each) => `\`${each.setting}\`${condition(each)}`);
  const secrets = entry.secrets.flatMap(({ setting, required }) =>
    required === undefined ? [] : [`\`${setting}\`${required === true ? "" : condition({ onlyIf: required })}`],
  );
  return [...settings, ...secrets].join(", ");
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
      const label = index === 0 ? "a conversation" : "any other conversation";
      return `- ${each.pattern === "" ? label : `a conversation whose id matches \`${each.pattern}\``}: ${text(each)}`;
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
