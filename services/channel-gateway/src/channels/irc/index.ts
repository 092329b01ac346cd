// The entry point of the IRC adapter.
import { ircChannel } from "@parley/contracts";
import { adapterOf } from "../load.ts";
import { createIrc } from "./adapter.ts";

export { createIrc, type IrcTuning } from "./adapter.ts";

export const createAdapter = adapterOf(ircChannel, (account, settings, { password_env: password }) =>
  createIrc(account, settings, password === undefined ? {} : { password }),
);
