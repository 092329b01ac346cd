// `parley console`: a link that signs a browser in.

import { api } from "../cluster/api.ts";
import { findTarget } from "../cluster/target.ts";
import { request } from "./command.ts";

export const consoleCommand = request(
  {
    name: "console",
    summary: "print a link that opens the web console, signed in",
    details:
      "The link works once, within 15 minutes. The code is in the fragment, which browsers do not send to servers.",
    examples: ["parley console", 'xdg-open "$(parley console)"'],
  },
  async (gateway, { values, io }) => {
    const { code, expiresAt } = await gateway.run(api.consoleCode, {});
    const [url = ""] = findTarget(values, io).urls();
    const link = `${url}/#code=${code}`;
    return { data: { url: link, expiresAt }, text: () => link };
  },
);
