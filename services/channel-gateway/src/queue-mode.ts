// What is done with a message while its session is busy. Pure.
import type { Origin, QueueMode } from "@parley/contracts";

/**
 * The mode that the message names wins, then the session's, then the settings'. Only messages of people name one: what a machine sends
 * waits for a turn of its own. So does a message whose caller waits for its answer (`exclusive`), unless it names a mode itself.
 */
export function queueModeOf(message: {
  origin: Origin;
  asked: QueueMode | undefined;
  exclusive: boolean;
  session: QueueMode | null;
  setting: QueueMode;
}): QueueMode {
  if (message.origin !== "user") return "queue";
  if (message.exclusive) return message.asked ?? "queue";
  return message.asked ?? message.session ?? message.setting;
}

/** In these modes a message shares a turn with others: its caller chose that, and gets the answer of the joined turn. */
export function joinsOthers(mode: QueueMode): boolean {
  return mode === "steer" || mode === "coalesce";
}
