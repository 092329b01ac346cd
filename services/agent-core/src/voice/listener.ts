// One voice session that listens: asks its server what was heard, keeps it, until it is told to stop or the server fails. It knows
// nothing that is not in the store: whoever leads next goes on from the cursor.
import { setTimeout as delay } from "node:timers/promises";
import type { Bus } from "@parley/bus";
import { faultPoint, type Logger } from "@parley/chassis";
import { newId, store, WireError, type InputOf, type VoiceSession } from "@parley/contracts";
import type { Pacer } from "./pacer.ts";
import { pageOf, type Page } from "./stt-answers.ts";
import { SttError, type Stt, type SttPlace } from "./stt.ts";

/** A pause after a failure grows up to this. */
const longestPauseMs = 5_000;
/** How often a server is told to stop before it is left alone. */
const stopTries = 3;

export interface ListenerDeps {
  bus: Bus;
  log: Logger;
  epoch: number;
  stt: Stt;
  storeTimeoutMs: number;
  /** The leader ends: the session goes on under the next one. */
  signal: AbortSignal;
}

/** A voice session whose server has begun. */
export type BegunVoice = VoiceSession & { server: string; sttSessionId: string };

export function hasBegun(voice: VoiceSession): voice is BegunVoice {
  return voice.server !== null && voice.sttSessionId !== null;
}

/** How it ended, for the store. */
export type Ending = Extract<InputOf<typeof store.voiceMove>["to"], { state: "stopped" | "failed" }>;

/**
 * Resolves with how it ended; null: it is over in the store already. `stopping` ends it after one last look. Rejects with STALE_EPOCH,
 * or CANCELLED when the leader ends. What the pacer hears of the server only ever makes a question come sooner: what is new is what lies
 * behind the cursor.
 */
export async function listen(
  deps: ListenerDeps,
  voice: BegunVoice,
  pacer: Pacer,
  stopping: AbortSignal,
): Promise<Ending | null> {
  const { bus, log, epoch, stt, storeTimeoutMs, signal } = deps;
  const { poll_ms: pauseMs, poll_limit: mostEvents, poll_tries: tries, keep_events: keep } = stt.settings;
  const { voiceId, sttSessionId } = voice;
  const place: SttPlace = { server: voice.server, runner: voice.runner };
  /** Of a server that any tool-runner reaches: the one that has just heard it. */
  let through = pacer.asks();
  const awake = AbortSignal.any([signal, stopping]);
  let sinceSeq = voice.sinceSeq;
  let limit = mostEvents;

  for (let failures = 0; ;) {
    const last = stopping.aborted;
    const page = await poll();
    if ("problem" in page && page.tooLarge && limit > 1) {
      // What a server says at once may be more than the bus carries: asked for in smaller pages, it all comes.
      limit = Math.ceil(limit / 2);
      continue;
    }
    if ("problem" in page) {
      if (last) break;
      failures += 1;
      through = null;
      log.warn({ voiceId, mcp: voice.server, problem: page.problem, failures }, "what was heard could not be had");
      if (failures >= tries) return { state: "failed", problem: page.problem };
      await pause(Math.min(longestPauseMs, pauseMs * 2 ** (failures - 1)), awake);
      continue;
    }
    failures = 0;
    if (!page.full) limit = mostEvents;
    if (page.events.length > 0) {
      pacer.found();
      faultPoint("voice.before_advance");
      const kept = await bus.request(
        store.voiceAdvance,
        { opId: newId(), epoch, voiceId, events: page.events, keep },
        { timeoutMs: storeTimeoutMs, signal },
      );
      faultPoint("voice.after_advance");
      sinceSeq = kept.sinceSeq;
      if (kept.state === "stopped" || kept.state === "failed") return null;
    }
    if (page.full) continue;
    // One that was told to stop before, by a leader that died then, has ended as it should.
    if (last) break;
    if (page.ended !== null) return { state: "failed", problem: page.ended };
    await pacer.next(awake);
    through = pacer.asks();
  }
  const problem = await tellServer();
  faultPoint("voice.after_stop");
  return { state: "stopped", problem };

  async function poll(): Promise<Page | { problem: string; tooLarge: boolean }> {
    try {
      const args = { session_id: sttSessionId, since_seq: sinceSeq, limit };
      const value = await stt.call({ ...place, runner: place.runner ?? through }, "updates", args, signal);
      return pageOf(value, sinceSeq, limit);
    } catch (error) {
      if (WireError.is(error)) throw error;
      const tooLarge = error instanceof SttError && WireError.is(error.cause, "TOO_LARGE");
      return { problem: error instanceof Error ? error.message : String(error), tooLarge };
    }
  }

  /** What went wrong; null: nothing. */
  async function tellServer(): Promise<string | null> {
    for (let tried = 1; ; tried++) {
      try {
        await stt.call(place, "stop", { session_id: sttSessionId }, signal);
        return null;
      } catch (error) {
        if (!(error instanceof SttError)) throw error;
        log.warn({ voiceId, mcp: voice.server, problem: error.message, tried }, "a server was not told to stop");
        if (tried >= stopTries) return `the server was not reached to be told to stop: ${error.message}`;
        await pause(pauseMs, signal);
      }
    }
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => undefined);
}
