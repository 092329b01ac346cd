// `parley rewind`: restores files to their state before a turn.

import { asking, defaultSession } from "../control/call.ts";
import type { ControlApi } from "../control/api.ts";
import { rewindText } from "../control/text.ts";
import { CliError, UsageError } from "../errors.ts";
import { exitCodes } from "../exit-codes.ts";

export const run = asking(async (api, { values, positionals }) => {
  const [checkpoint] = positionals;
  if (checkpoint === undefined) throw new UsageError("Name a checkpoint; parley checkpoints lists them.");
  const session = values.text("session") ?? (await defaultSession(api));
  const id = await idOf(api, session, checkpoint);
  const report = await api.rewind(session, id, values.has("dry-run"));
  return {
    data: report,
    text: (paint) => rewindText(report, paint),
    code: report.counts.failed === 0 ? exitCodes.ok : exitCodes.error,
  };
});

/** Resolves a checkpoint by its id, by the end of its id as chats show it, or by its number in the list. Throws CliError if none matches. */
async function idOf(api: ControlApi, session: string, named: string): Promise<string> {
  if (/^[0-9a-f-]{36}$/i.test(named)) return named;
  const { checkpoints } = await api.checkpoints(session);
  const ids = checkpoints.map(({ checkpointId }) => checkpointId);
  const found = /^\d{1,3}$/.test(named) ? ids[Number(named) - 1] : ids.find((id) => id.endsWith(named.toLowerCase()));
  if (found === undefined) {
    throw new CliError(`There is no checkpoint "${named}".`, { fix: "parley checkpoints lists them." });
  }
  return found;
}
