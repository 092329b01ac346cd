// `parley checkpoints`: how files were before turns changed them.

import { asking, defaultSession } from "../control/call.ts";
import { checkpointsTable } from "../control/text.ts";

export const run = asking(async (api, { positionals }) => {
  const found = await api.checkpoints(positionals[0] ?? (await defaultSession(api)));
  return { data: found, text: (paint) => checkpointsTable(found.checkpoints, paint) };
});
