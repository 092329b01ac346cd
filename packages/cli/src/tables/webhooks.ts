// Formats webhooks for people. Pure.

import { webhookSchemes, type WebhookAccount } from "@parley/contracts";

import { asTyped } from "../io/command-name.ts";
import type { Paint } from "../io/io.ts";
import { listing } from "./format.ts";

type Webhook = Pick<WebhookAccount, "signer" | "format" | "target" | "profile" | "reply_to"> & {
  id: string;
  secretEnv: string;
  secretIsSet: boolean;
  path: string;
};

export function webhooksTable(webhooks: readonly Webhook[], paint: Paint): string {
  if (webhooks.length === 0)
    return asTyped("No webhook is configured. parley webhooks add <name> adds one; docs/webhooks.md shows how.");
  return listing(
    webhooks,
    {
      NAME: ({ id }) => id,
      PATH: ({ path }) => path,
      SENDER: ({ signer }) => webhookSchemes[signer].title,
      FORMAT: ({ format }) => format,
      TARGET: ({ target, profile }) => target ?? (profile === undefined ? "by session.share" : `profile ${profile}`),
      "ANSWERS TO": ({ reply_to: to }) => (to === undefined ? "-" : `${to.channel}:${to.account}:${to.conversation}`),
      SECRET: ({ secretEnv, secretIsSet }) =>
        secretIsSet ? `${secretEnv} is set here` : paint("yellow", `${secretEnv} is not set here`),
    },
    paint,
  );
}
