// `parley checkpoints`: lists the checkpoints of a session.

import { asking, defaultSession } from "../control/call.ts";
import { checkpointsTable } from "../control/text.ts";

export const run = asking(async (api, { positionals }) => {
  const found = await api.checkpoints(positionals[0] ?? (await defaultSession(api)));
  return { data: found, text: (paint) => checkpointsTable(found.checkpoints, paint) };
});
