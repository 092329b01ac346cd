// `parley model`: the model, effort and permission mode of a session.

import { asking, defaultSession } from "../control/call.ts";
import { overridesText } from "../control/text.ts";

export const run = asking(async (api, { values, positionals }) => {
  const session = values.text("session") ?? (await defaultSession(api));
  const asked = {
    model: positionals[0],
    effort: values.text("effort"),
    permissionMode: values.text("permission-mode"),
  };
  const overrides: Record<string, string | null> = {};
  for (const [name, value] of Object.entries(asked)) {
    if (value !== undefined) overrides[name] = value === "default" ? null : value;
  }
  const changes = Object.keys(overrides).length > 0;
  const found = changes ? await api.update(session, { overrides }) : await api.session(session);
  return { data: found, text: () => overridesText(found.session) };
});
