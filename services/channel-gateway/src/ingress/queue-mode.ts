// Selects the queue mode of a message that arrives while its session is busy. Pure.
import type { Origin, QueueMode } from "@parley/contracts";

/**
 * The mode of the message takes precedence, then the session's, then the configured one. Messages from machines always queue for their
 * own turn. So do messages whose caller waits for the answer (`exclusive`), unless the message names a mode.
 */
export function queueModeOf(message: {
  origin: Origin;
  requested: QueueMode | undefined;
  exclusive: boolean;
  session: QueueMode | null;
  setting: QueueMode;
}): QueueMode {
  if (message.origin !== "user") return "queue";
  if (message.exclusive) return message.requested ?? "queue";
  return message.requested ?? message.session ?? message.setting;
}

/** Whether a message in this mode may share a turn with others. Its caller then receives the answer of the joined turn. */
export function joinsOthers(mode: QueueMode): boolean {
  return mode === "steer" || mode === "coalesce";
}
