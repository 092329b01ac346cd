// `parley compact`: replaces the older part of a conversation with a summary.

import { asking, defaultSession } from "../control/call.ts";
import { compactText } from "../control/text.ts";

export const run = asking(async (api, { values, positionals }) => {
  const compacted = await api.compact(positionals[0] ?? (await defaultSession(api)), values.text("keep"));
  return { data: compacted, text: () => compactText(compacted) };
});
