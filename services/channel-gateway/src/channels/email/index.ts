// The entry point of the e-mail adapter.
import { emailChannel } from "@parley/contracts";
import { adapterOf } from "../load.ts";
import { createEmail } from "./adapter.ts";

export { createEmail } from "./adapter.ts";

export const createAdapter = adapterOf(emailChannel, (account, settings, { password_env: password }) =>
  createEmail(account, settings, password === undefined ? {} : { password }),
);
