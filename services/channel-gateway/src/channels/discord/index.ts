// The entry point of the Discord adapter.
import { discordChannel } from "@parley/contracts";
import { adapterOf } from "../load.ts";
import { createDiscord } from "./adapter.ts";

export { createDiscord } from "./adapter.ts";

export const createAdapter = adapterOf(discordChannel, (account, settings, { token_env: token = "" }) =>
  createDiscord(account, settings, { token }),
);
