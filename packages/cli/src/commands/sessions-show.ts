// `parley sessions show`: the messages of one session, page by page.

import { Gateway } from "../cluster/gateway.ts";
import { MessagesAnswer } from "../cluster/shapes.ts";
import { findTarget } from "../cluster/target.ts";
import type { Run } from "../command-line/command.ts";
import { UsageError } from "../errors.ts";
import { exitCodes } from "../exit-codes.ts";
import { painter, print } from "../io.ts";
import { messageText } from "../sessions/text.ts";

export const run: Run = async ({ values, positionals, io }) => {
  const [id] = positionals;
  if (id === undefined) throw new UsageError("Name a session; parley sessions lists them.");
  const gateway = new Gateway(findTarget(values, io));
  const paint = painter(io.stdout, io.env);
  let after = 0;
  for (;;) {
    const path = `/api/sessions/${encodeURIComponent(id)}/messages?after=${after}&limit=200`;
    const { messages, more } = await gateway.get(path, MessagesAnswer);
    for (const message of messages) {
      after = message.seq;
      const text = values.has("json") ? JSON.stringify(message) : messageText(message, paint);
      if (text !== "") print(io, text);
    }
    if (!more || messages.length === 0) return exitCodes.ok;
  }
};
