// Identifies and quotes user requests in a session's log, and selects the one to repeat after a summary because the view no longer
// contains it; pure.
import { type CompactionSettings, type Message, type ViewRecord, textOf } from "@parley/contracts";

/** Whether somebody sent the message; notes of the loop are user messages without a sender. */
export function isUserRequest(message: Message): boolean {
  return message.role === "user" && message.from !== undefined;
}

/** The literal text; attachments are named, not repeated. */
export function requestText(message: Message): string {
  const attached = message.parts.flatMap((part) => {
    if (part.type === "blob") return [`[attached: ${part.name}, ${part.mediaType}, id ${part.sha256}]`];
    return part.type === "binary" ? [`[attached: ${part.name ?? "a file"}, ${part.mediaType}]`] : [];
  });
  return [textOf(message.parts), ...attached].filter((text) => text.trim() !== "").join("\n\n");
}

/**
 * The text to repeat after a cut at `start` of `tail`: all removed requests of the running turn; otherwise the newest request, if the
 * settings require it and no retained message is a request. Null if nothing needs to be repeated.
 */
export function lastRequest(
  input: { record: ViewRecord | null; settings: CompactionSettings; turnId: string | null },
  tail: readonly Message[],
  start: number,
): string | null {
  const { record, settings, turnId } = input;
  const removed = tail.slice(0, start).filter((message) => isUserRequest(message));
  const carried = record?.lastRequest ?? null;
  const fromSeq = record?.fromSeq ?? 0;
  // A repeated request belongs to the turn that the previous cut split, which is the turn of the first message after that cut.
  const carriedTurn = tail.find((message) => message.seq >= fromSeq)?.turnId;
  const ofTurn = [
    ...(carried !== null && carriedTurn === turnId ? [carried] : []),
    ...removed.filter((message) => message.turnId === turnId).map((message) => requestText(message)),
  ];
  const running = joined(ofTurn);
  if (running !== null) return running;
  if (!settings.append_last_request || tail.slice(start).some((message) => isUserRequest(message))) return null;
  const newest = removed.at(-1);
  if (newest === undefined || (carried !== null && newest.seq < fromSeq)) return carried;
  return joined([requestText(newest)]);
}

function joined(texts: readonly string[]): string | null {
  const nonEmpty = texts.filter((text) => text !== "");
  return nonEmpty.length > 0 ? nonEmpty.join("\n\n") : null;
}
