// What is done with a message while its session is busy. Pure.
import type { Origin, QueueMode } from "@parley/contracts";

/**
 * The message's own word wins, then the session's, then the settings'. Only people have a say: what a machine sends waits for a
 * turn of its own.
 */
export function queueModeOf(message: {
  origin: Origin;
  asked: QueueMode | undefined;
  session: QueueMode | null;
  setting: QueueMode;
}): QueueMode {
  if (message.origin !== "user") return "queue";
  return message.asked ?? message.session ?? message.setting;
}
