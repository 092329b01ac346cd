// Which request must stand behind a summary because the messages that hold it are no longer shown; pure.
import type { CompactionSettings, Message, ViewRecord } from "@parley/contracts";
import { isRequest, requestText } from "./requests.ts";

/**
 * The text to repeat after a cut at `start` of `tail`. A running turn's requests always stay; else the newest one does, if the
 * settings want it and no kept message is a request. Null: nothing needs repeating.
 */
export function lastRequest(
  input: { record: ViewRecord | null; settings: CompactionSettings; turnId: string | null },
  tail: readonly Message[],
  start: number,
): string | null {
  const { record, settings, turnId } = input;
  const removed = tail.slice(0, start).filter((message) => isRequest(message));
  const carried = record?.lastRequest ?? null;
  const fromSeq = record?.fromSeq ?? 0;
  // A cut that left a request behind it went through that request's turn, so what follows it tells whose it is.
  const carriedTurn = tail.find((message) => message.seq >= fromSeq)?.turnId;
  const ofTurn = [
    ...(carried !== null && carriedTurn === turnId ? [carried] : []),
    ...removed.filter((message) => message.turnId === turnId).map((message) => requestText(message)),
  ];
  const running = joined(ofTurn);
  if (running !== null) return running;
  if (!settings.append_last_request || tail.slice(start).some((message) => isRequest(message))) return null;
  const newest = removed.at(-1);
  if (newest === undefined || (carried !== null && newest.seq < fromSeq)) return carried;
  return joined([requestText(newest)]);
}

function joined(texts: readonly string[]): string | null {
  const said = texts.filter((text) => text !== "");
  return said.length > 0 ? said.join("\n\n") : null;
}
