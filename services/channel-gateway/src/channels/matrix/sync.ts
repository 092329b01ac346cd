// The connection of an account: a loop of long polls. A batch's position is saved with its last message, so a crash in between delivers
// the batch again, and the gateway recognises stored messages by their event ids.
import type { z } from "zod";
import type { MatrixAccount } from "@parley/contracts";
import type { ChannelHost, LeaseRef, Position } from "../channel.ts";
import { PlatformUnavailableError } from "../outcome.ts";
import { skipUnstorable, store, type ParsedInput } from "../parsed.ts";
import { withTimeout } from "../transport.ts";
import { resultOrNull, type MatrixApi } from "./api.ts";
import { mayNeedName, parse, relatedIdOf } from "./parse.ts";
import { Rooms } from "./rooms.ts";
import { Sync, type MatrixEvent } from "./schema.ts";
import { eventsSince, syncFilter } from "./timeline.ts";

export interface SyncDeps {
  api: MatrixApi;
  account: string;
  settings: MatrixAccount;
  identify: (signal: AbortSignal) => Promise<string>;
}

const longPollMs = 30_000;
/** A response may be large after an outage. */
const answerTimeoutMs = longPollMs + 30_000;
const requestTimeoutMs = 15_000;
/** How often the position of batches without input is saved. A crash reads them again, which is harmless. */
const idleCheckpointMs = 10_000;

/** Receives until the lease ends. Throws AccountRejectedError, PlatformUnavailableError, or what the host throws. */
export async function receive(deps: SyncDeps, host: ChannelHost, lease: LeaseRef): Promise<void> {
  const { signal } = lease;
  const { api, account, settings } = deps;
  const userId = await deps.identify(withTimeout(signal, requestTimeoutMs));
  const rooms = new Rooms(api, settings, userId, signal);
  await rooms.readProfile();
  await rooms.joinGroups(host.log);
  let since = lease.cursor;
  let connected = false;
  let savedMs = performance.now();

  const inputOf = async (roomId: string, event: MatrixEvent): Promise<ParsedInput | null> => {
    rooms.rememberThread(roomId, event);
    const relatedId = event.sender === userId ? undefined : relatedIdOf(event);
    if (mayNeedName(event, rooms.me(roomId))) await rooms.readProfile();
    const parsed = parse(event, {
      account,
      roomId,
      me: rooms.me(roomId),
      direct: await rooms.isDirect(roomId),
      nameOf: (of) => rooms.nameOf(roomId, of),
      related: relatedId === undefined ? null : await rooms.event(roomId, relatedId),
    });
    if (parsed.kind === "encrypted") await rooms.explainEncryption(roomId);
    return parsed.kind === "encrypted" || parsed.kind === "skipped" ? null : parsed;
  };
  const inputsOf = async ({ rooms: changed }: z.infer<typeof Sync>, from: string): Promise<ParsedInput[]> => {
    const inputs: ParsedInput[] = [];
    for (const [roomId, room] of [...Object.entries(changed.join), ...Object.entries(changed.leave)]) {
      rooms.observe(roomId, [...room.state.events, ...room.timeline.events]);
      const onTruncated = () =>
        host.log.error({ conversation: roomId }, "messages skipped: too many since the last connection");
      for (const event of await eventsSince({ api, userId, signal, onTruncated }, roomId, room, from)) {
        const input = await inputOf(roomId, event);
        if (input !== null) inputs.push(input);
      }
    }
    return inputs;
  };

  while (!signal.aborted) {
    const answer = await api({
      method: "GET",
      path: "/client/v3/sync",
      query: {
        filter: syncFilter,
        timeout: connected && since !== null ? String(longPollMs) : "0",
        ...(since === null ? {} : { since }),
      },
      result: Sync,
      signal: withTimeout(signal, answerTimeoutMs),
    });
    if (signal.aborted) return;
    const batch = await resultOrNull(answer, signal);
    if (batch === null)
      throw new PlatformUnavailableError("the homeserver refuses to synchronise from the stored position");
    if (!connected) host.report({ state: "connected", as: userId });
    connected = true;
    for (const [roomId, room] of Object.entries(batch.rooms.invite)) {
      await rooms.answerInvitation(roomId, room, host.log);
    }
    // Messages from before the first connection are not answered.
    const inputs = since === null ? [] : await inputsOf(batch, since);
    const isSaved = await deliver(host, inputs, {
      between: since === null ? undefined : { lease, cursor: since },
      last: { lease, cursor: batch.next_batch },
    });
    const isDue = since === null || inputs.length > 0 || performance.now() - savedMs >= idleCheckpointMs;
    if (!isSaved && isDue && batch.next_batch !== since) {
      await host.checkpoint({ lease, cursor: batch.next_batch });
      savedMs = performance.now();
    }
    since = batch.next_batch;
  }
}

/** Passes inputs to the host in order. Returns whether the position after the batch was saved with the last one. */
async function deliver(
  host: ChannelHost,
  inputs: readonly ParsedInput[],
  position: { between: Position | undefined; last: Position },
): Promise<boolean> {
  let isSaved = false;
  for (const [index, input] of inputs.entries()) {
    const at = index === inputs.length - 1 ? position.last : position.between;
    const { externalId } = input.kind === "change" ? input.change : input.draft;
    isSaved = (await skipUnstorable(host.log, { messageId: externalId }, async () => store(host, input, at))) !== null;
  }
  return isSaved;
}
