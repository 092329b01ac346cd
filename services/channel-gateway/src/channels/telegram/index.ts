// The entry point of the Telegram adapter.
import { telegramChannel } from "@parley/contracts";
import { adapterOf } from "../load.ts";
import { createTelegram } from "./adapter.ts";

export { createTelegram };

export const createAdapter = adapterOf(telegramChannel, (account, settings, secrets) => {
  const { token_env: token = "", webhook_secret_env: webhookSecret } = secrets;
  return createTelegram(account, settings, { token, ...(webhookSecret === undefined ? {} : { webhookSecret }) });
});
