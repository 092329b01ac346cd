// `parley chat`: a conversation on a terminal, or one message and its answer in a pipe.

import { sendOnce } from "../chat/send-once.ts";
import { readAll } from "../chat/stdin.ts";
import { callPlace, ownConversation } from "../chat/open.ts";
import { runChat } from "../chat/interactive.ts";
import { modeOf } from "../chat/mode.ts";
import { findTarget } from "../cluster/target.ts";
import type { Run } from "../command-line/command.ts";
import { UsageError } from "../errors.ts";

export const run: Run = async ({ values, io }) => {
  const target = findTarget(values, io);
  const session = values.text("session");
  const named = values.text("conversation");
  const json = values.has("json");
  if (io.stdin.isTTY && io.stdout.isTTY && !json) {
    if (values.has("mode"))
      throw new UsageError(
        "--mode applies to one message in a pipe.",
        "In a chat, write /steer, /later or /now before a text.",
      );
    return runChat(target, { conversation: named ?? ownConversation, session, unasked: true }, io);
  }
  const text = await readAll(io.stdin);
  if (text.trim() === "")
    throw new UsageError("Standard input is empty: there is nothing to send.", "echo hi | parley chat");
  return sendOnce(target, { ...callPlace("once", named, text), session }, { text, mode: modeOf(values) }, io, json);
};
