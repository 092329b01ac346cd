// Receives messages while the lease is held: starts the daemon if that is wanted, opens its event stream, and stores each message before it
// reads the next one. A broken stream is opened again; a message that cannot be stored is offered again.
import { setTimeout as delay } from "node:timers/promises";
import { errorMessage, WireError, type SignalAccount } from "@parley/contracts";
import { parseJson } from "@parley/kit";
import { z } from "zod";
import { AccountRejectedError, type ChannelHost, type LeaseRef } from "../channel.ts";
import { untilStored } from "../inbound-queue.ts";
import { PlatformUnavailableError } from "../outcome.ts";
import { idOf, store } from "../parsed.ts";
import { withTimeout } from "../transport.ts";
import { startDaemon, type Daemon } from "./daemon.ts";
import { readEvents } from "./events.ts";
import { parse } from "./parse.ts";
import { ReceivedLog } from "./received-log.ts";
import { errorCode, type Call } from "./rpc.ts";

/** Pauses before the stream is opened again; the last one repeats. */
const reconnectPausesMs = [1_000, 2_000, 4_000, 10_000];
const jitter = 0.2;
const checkWithinMs = 10_000;

/** The pause after a number of consecutive failures, at least 1. `random`: in [0, 1). */
export function reconnectPauseMs(failures: number, random = Math.random()): number {
  const index = Math.min(failures, reconnectPausesMs.length) - 1;
  return (reconnectPausesMs[index] ?? 0) * (1 - jitter + 2 * jitter * random);
}

export interface Receiving {
  account: string;
  settings: SignalAccount;
  call: Call;
  silenceMs?: number | undefined;
}

const Accounts = z.array(z.object({ number: z.string().nullish() }));

/**
 * Rejects with AccountRejectedError when the daemon does not have the account's number. A daemon of a single account has no list; its event
 * stream names the number.
 */
export async function requireAccount(call: Call, number: string, signal: AbortSignal): Promise<void> {
  const answer = await call("listAccounts", {}, Accounts, signal);
  if (answer.kind === "ok") {
    if (answer.result.some((account) => account.number === number)) return;
    throw new AccountRejectedError(`the daemon has no account ${number}: register or link it with signal-cli`);
  }
  if (answer.kind === "refused" && answer.code === String(errorCode.method)) return;
  throw new PlatformUnavailableError(`the daemon could not be reached: ${answer.reason}`);
}

/** Returns when the lease ends. Rejects with AccountRejectedError, or with the WireError FENCED when another replica holds the lease. */
export async function receive({ account, settings, call, silenceMs }: Receiving, host: ChannelHost, lease: LeaseRef) {
  const { number, daemon_url: daemonUrl, data_dir: dataDir } = settings;
  const { signal } = lease;
  const received = settings.start_daemon && dataDir !== undefined ? new ReceivedLog(dataDir, number) : null;
  let daemon: Daemon | null = null;
  let [storedId = "", lastEventId] = lease.cursor?.split(" ") ?? [];
  let failures = 0;

  /** Stores what one event contains. Resolves when it is stored or can never be stored. */
  const take = async (data: string, eventId: string | undefined): Promise<void> => {
    lastEventId = eventId ?? lastEventId;
    const parsed = parse(parseJson(data), { account, number });
    if (parsed.kind === "skipped") {
      host.log.info({ reason: parsed.reason }, "event skipped");
      return;
    }
    const externalId = idOf(parsed);
    const position = { lease, cursor: [externalId, ...(lastEventId === undefined ? [] : [lastEventId])].join(" ") };
    await untilStored(host.log, { messageId: externalId }, signal, async () => store(host, parsed, position));
    storedId = externalId;
  };
  const isStored = (line: string): boolean => storedId !== "" && externalIdOf(line, { account, number }) === storedId;

  const connect = async (): Promise<void> => {
    if (received !== null && dataDir !== undefined && daemon?.running !== true) {
      const file = await received.open();
      const { command } = settings;
      const options = { command, dataDir, number, daemonUrl, receivedLog: file, log: host.log };
      try {
        daemon = await startDaemon(options, signal);
      } finally {
        await file.close();
      }
    }
    await requireAccount(call, number, withTimeout(signal, checkWithinMs));
    const onOpen = async (): Promise<void> => {
      failures = 0;
      host.log.info({}, "connected");
      host.report({ state: "connected", as: number });
      await received?.replay(isStored, (line) => take(line, undefined));
    };
    const stream = { daemonUrl, number, lastEventId, signal, silenceMs };
    await readEvents(stream, onOpen, ({ id, data }) => take(data, id));
    throw new Error("the daemon ended the event stream");
  };

  try {
    while (!signal.aborted) {
      try {
        await connect();
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof AccountRejectedError || WireError.is(error, "FENCED")) throw error;
        failures += 1;
        const waitMs = reconnectPauseMs(failures);
        const reason = errorMessage(error);
        host.log.warn({ reason, waitMs }, "connection lost");
        host.report({ state: "failing", reason });
        await delay(waitMs, undefined, { signal }).catch(() => undefined);
      }
    }
  } finally {
    await (daemon as Daemon | null)?.stop();
  }
}

function externalIdOf(line: string, context: { account: string; number: string }): string | null {
  const parsed = parse(parseJson(line), context);
  return parsed.kind === "skipped" ? null : idOf(parsed);
}
