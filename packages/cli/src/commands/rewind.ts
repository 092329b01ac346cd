// `parley rewind`: puts files back to how they were before a turn.

import { asking, defaultSession } from "../control/call.ts";
import { rewindText } from "../control/text.ts";
import { UsageError } from "../errors.ts";
import { exitCodes } from "../exit-codes.ts";

export const run = asking(async (api, { values, positionals }) => {
  const [checkpoint] = positionals;
  if (checkpoint === undefined) throw new UsageError("To where? parley checkpoints lists what there is.");
  const report = await api.rewind(values.text("session") ?? defaultSession, checkpoint, values.has("dry-run"));
  return {
    data: report,
    text: (paint) => rewindText(report, paint),
    code: report.counts.failed === 0 ? exitCodes.ok : exitCodes.error,
  };
});
