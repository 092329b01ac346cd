// The entry point of the WhatsApp adapter.
import { whatsappChannel } from "@parley/contracts";
import { adapterOf } from "../load.ts";
import { createWhatsApp } from "./adapter.ts";

export { createWhatsApp };

export const createAdapter = adapterOf(whatsappChannel, (account, settings, secrets) => {
  const { token_env: token = "", app_secret_env: appSecret = "", verify_token_env: verifyToken = "" } = secrets;
  return createWhatsApp(account, settings, { token, appSecret, verifyToken });
});
