// What an account of a channel needs, from the channel's entry; pure.

import { type ChannelEntry, channelNamed } from "@parley/contracts";
import { z } from "zod";

export interface ChannelAnswer {
  readonly channel: string;
  readonly account: string;
  readonly settings: Readonly<Record<string, string>>;
  /** Values by the setting that names their variable. */
  readonly secrets: Readonly<Record<string, string>>;
}

/** The variable for a secret of an account, such as `PARLEY_CHANNEL_TELEGRAM_MAIN_TOKEN`. */
function secretVariable(channel: string, account: string, setting: string): string {
  const name = [channel, account, setting.replace(/_env$/, "")].join("_");
  return `PARLEY_CHANNEL_${name.toUpperCase().replaceAll(/[^A-Z0-9]/g, "_")}`;
}

/** The values in the types of the entry's settings: numbers, and lists from text with commas. */
function typed({ settings }: ChannelEntry, given: Readonly<Record<string, string>>) {
  const { properties = {} } = z.toJSONSchema(settings, { io: "input" });
  return Object.fromEntries(
    Object.entries(given).map(([name, text]): [string, string | number | boolean | string[]] => {
      const property = properties[name];
      const type = typeof property === "object" ? property.type : undefined;
      if (type === "array") return [name, text.split(",").map((each) => each.trim())];
      if (type === "boolean") return [name, /^(?:true|y|yes)$/i.test(text)];
      return [name, type === "number" || type === "integer" ? Number(text) : text];
    }),
  );
}

/** The settings and secrets of a new account. */
export function channelPlan({ channel, account, settings, secrets }: ChannelAnswer) {
  const entry = channelNamed(channel);
  if (entry === undefined) throw new Error(`there is no channel ${channel}`);
  const named = Object.entries(secrets).map(([setting, value]) => {
    const variable = secretVariable(channel, account, setting);
    return { setting, variable, value };
  });
  return {
    tables: {
      [`channels.${channel}.${account}`]: {
        ...typed(entry, settings),
        ...Object.fromEntries(named.map(({ setting, variable }) => [setting, variable])),
      },
    },
    secrets: Object.fromEntries(named.map(({ variable, value }) => [variable, value])),
  };
}
