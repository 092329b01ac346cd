// The entry point of the Slack adapter.
import { slackChannel } from "@parley/contracts";
import { adapterOf } from "../load.ts";
import { createSlack } from "./adapter.ts";

export { createSlack };

export const createAdapter = adapterOf(slackChannel, (account, settings, secrets) => {
  const { token_env: token = "", app_token_env: appToken = "", signing_secret_env: signingSecret = "" } = secrets;
  return createSlack(account, settings, { token, appToken, signingSecret });
});
