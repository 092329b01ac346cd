// Requests a rewind for a person: the store issues a permit, and a tool-runner executes the rewind with it.
import type { Bus } from "@parley/bus";
import { checkpointRewind, store, type InputOf, type RewindReport } from "@parley/contracts";

/** Throws the WireError of the store or of the tool-runner. A second request with the same `opId` continues the same rewind. */
export async function requestRewind(
  bus: Bus,
  order: Omit<InputOf<typeof checkpointRewind>, "secret">,
  timeoutMs: number,
): Promise<RewindReport> {
  const { opId: rewindId, sessionId, turnId } = order;
  const { secret } = await bus.request(store.rewindPermit, { rewindId, sessionId, turnId });
  return bus.request(checkpointRewind, { ...order, secret }, { timeoutMs });
}
