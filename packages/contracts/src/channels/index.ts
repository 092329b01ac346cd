// All channels. A new one is a line here, its entry in this folder, and the gateway's folder of its name.
import { z } from "zod";
import type { ChannelEntry, ChannelSecret, SettingQuestion } from "./entry.ts";
import { discordChannel } from "./discord.ts";
import { emailChannel } from "./email.ts";
import { ircChannel } from "./irc.ts";
import { matrixChannel } from "./matrix.ts";
import { slackChannel } from "./slack.ts";
import { signalChannel } from "./signal.ts";
import { telegramChannel } from "./telegram.ts";
import { whatsappChannel } from "./whatsapp.ts";

export { discordChannel, type DiscordAccount } from "./discord.ts";
export { emailChannel, type EmailAccount } from "./email.ts";
export { ircChannel, type IrcAccount } from "./irc.ts";
export { matrixChannel, type MatrixAccount } from "./matrix.ts";
export { slackChannel, type SlackAccount } from "./slack.ts";
export { signalChannel, type SignalAccount } from "./signal.ts";
export { telegramChannel, type TelegramAccount } from "./telegram.ts";
export { whatsappChannel, type WhatsAppAccount } from "./whatsapp.ts";

export const channelEntries: readonly ChannelEntry[] = [
  telegramChannel,
  ircChannel,
  emailChannel,
  whatsappChannel,
  slackChannel,
  discordChannel,
  matrixChannel,
  signalChannel,
];

/** The entry with this name; undefined for a name that is not a channel, such as `http`. */
export function channelNamed(name: string): ChannelEntry | undefined {
  return channelEntries.find((entry) => entry.name === name);
}

/** The TCP ports on the public internet that the gateway connects to, lowest first. */
export function channelPorts(): number[] {
  const ports = channelEntries.flatMap((entry) => entry.ports ?? [httpsPort]);
  return [...new Set(ports)].toSorted((one, other) => one - other);
}

const httpsPort = 443;

/** An address in the form `channel:account:conversation`, for examples in texts. */
export const exampleAddress = telegramChannel.exampleAddress;

/** A secret of an account and the variable that its settings name. */
export interface NamedChannelSecret extends ChannelSecret {
  /** The environment variable; undefined: the settings name none. */
  variable: string | undefined;
  /** The account cannot work without it. */
  needed: boolean;
}

/** The secrets of one account, in the order of its entry. */
export function secretsOf({ secrets }: ChannelEntry, settings: object): NamedChannelSecret[] {
  const values = settings as Readonly<Record<string, unknown>>;
  return secrets.map((secret) => {
    const { setting, required } = secret;
    const needed = typeof required === "object" ? values[required.setting] === required.value : required === true;
    const variable = values[setting];
    return { ...secret, variable: typeof variable === "string" ? variable : undefined, needed };
  });
}

/** The settings of an account other than those that name secrets: those without a default, and all others. */
export function settingNamesOf(entry: ChannelEntry): { required: string[]; optional: string[] } {
  const { properties = {}, required = [] } = z.toJSONSchema(entry.settings, { io: "input" });
  const secrets = new Set(entry.secrets.map(({ setting }) => setting));
  const names = Object.keys(properties).filter((name) => !secrets.has(name));
  return {
    required: names.filter((name) => required.includes(name)),
    optional: names.filter((name) => !required.includes(name)),
  };
}

/** The secrets that an account with these settings, and the defaults, cannot work without. */
export function neededSecrets(entry: ChannelEntry, settings: object): NamedChannelSecret[] {
  return secretsOf(entry, withDefaults(entry, settings)).filter(({ needed }) => needed);
}

/** The questions that an account with these settings, and the defaults, leaves open. */
export function openQuestions(entry: ChannelEntry, settings: object): SettingQuestion[] {
  const values = withDefaults(entry, settings);
  return (entry.questions ?? []).filter(
    ({ setting, onlyIf }) =>
      !(setting in settings) && (onlyIf === undefined || values[onlyIf.setting] === onlyIf.value),
  );
}

/** The settings of an account, and the defaults of those that are left out. */
export function withDefaults({ settings: schema }: ChannelEntry, settings: object): Record<string, unknown> {
  const { properties = {} } = z.toJSONSchema(schema, { io: "input" });
  const defaults = Object.entries(properties).flatMap(([name, property]): [string, unknown][] =>
    typeof property === "object" && property.default !== undefined ? [[name, property.default]] : [],
  );
  return { ...Object.fromEntries(defaults), ...settings };
}

/** The name of the variable or file with a secret of an account that was added while the cluster ran. */
export function secretVariableFor(channel: string, account: string, setting: string): string {
  const parts = [channel, account, setting.replace(/_env$/, "")];
  return `PARLEY_CHANNEL_${parts.join("_").replaceAll("-", "_").toUpperCase()}`;
}
