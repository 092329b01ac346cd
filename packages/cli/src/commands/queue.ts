// `parley queue`: lists, cancels and edits the queued messages of a session.

import { asking, defaultSession } from "../control/call.ts";
import { queueTable } from "../control/text.ts";
import { UsageError } from "../errors.ts";

export const run = asking(async (api, { values, positionals }) => {
  const [operand] = positionals;
  const cancel = values.text("cancel");
  const edit = values.text("edit");
  if (cancel !== undefined && edit !== undefined) throw new UsageError("Use either --cancel or --edit, not both.");
  if (cancel === undefined && edit === undefined) {
    const queue = await api.queue(operand ?? (await defaultSession(api)));
    return { data: queue, text: (paint) => queueTable(queue.rows, queue.more, paint) };
  }
  if (edit !== undefined && operand === undefined)
    throw new UsageError("Name the new text: parley queue --edit <id> 'text'");
  if (edit === undefined) await api.unqueue(cancel ?? "");
  else await api.reword(edit, operand ?? "");
  return { data: { done: true }, text: () => (edit === undefined ? "Cancelled." : "Updated.") };
});
