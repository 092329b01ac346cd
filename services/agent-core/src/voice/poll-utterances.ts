// Polls the server of one voice session for utterances and stores them, until the session is stopped or the server fails. The cursor
// is in the store, so that the next leader continues from it.
import { setTimeout as delay } from "node:timers/promises";
import type { Bus } from "@parley/bus";
import { faultPoint, type Logger } from "@parley/chassis";
import { newId, store, WireError, type InputOf, type VoiceSession } from "@parley/contracts";
import { parseUpdatePage, type UpdatePage } from "./stt-responses.ts";
import { SttError, type Stt, type SttPlace } from "./stt.ts";

/** Maximum backoff after failures. */
const longestPauseMs = 5_000;
/** Maximum number of stop requests to a server. */
const stopTries = 3;

export interface ListenerDeps {
  bus: Bus;
  log: Logger;
  epoch: number;
  stt: Stt;
  storeTimeoutMs: number;
  /** Aborts when the leader ends; the next leader continues the session. */
  signal: AbortSignal;
}

/** A voice session that its server has started. */
export type BegunVoice = VoiceSession & { server: string; sttSessionId: string };

export function hasBegun(voice: VoiceSession): voice is BegunVoice {
  return voice.server !== null && voice.sttSessionId !== null;
}

/** The final state, for the store. */
export type SessionEnd = Extract<InputOf<typeof store.voiceMove>["to"], { state: "stopped" | "failed" }>;

/**
 * Resolves with the final state; null if the session has already ended in the store. `stopping` ends it after one last poll. Rejects
 * with STALE_EPOCH, or CANCELLED when the leader ends. The cursor determines which events are new.
 */
export async function pollUtterances(
  deps: ListenerDeps,
  voice: BegunVoice,
  stopping: AbortSignal,
): Promise<SessionEnd | null> {
  const { bus, log, epoch, stt, storeTimeoutMs, signal } = deps;
  const { poll_ms: pauseMs, poll_limit: mostEvents, poll_tries: tries, keep_events: keep } = stt.settings;
  const { voiceId, sttSessionId } = voice;
  const place: SttPlace = { server: voice.server, runner: voice.runner };
  const awake = AbortSignal.any([signal, stopping]);
  let sinceSeq = voice.sinceSeq;
  let limit = mostEvents;

  for (let failures = 0; ;) {
    const last = stopping.aborted;
    const page = await poll();
    if ("problem" in page && page.tooLarge && limit > 1) {
      // A page may exceed the size limit of the bus; smaller pages fit.
      limit = Math.ceil(limit / 2);
      continue;
    }
    if ("problem" in page) {
      if (last) break;
      failures += 1;
      log.warn({ voiceId, mcp: voice.server, reason: page.problem, failures }, "voice updates not received");
      if (failures >= tries) return { state: "failed", problem: page.problem };
      await pause(Math.min(longestPauseMs, pauseMs * 2 ** (failures - 1)), awake);
      continue;
    }
    failures = 0;
    if (!page.full) limit = mostEvents;
    if (page.events.length > 0) {
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
    // If a previous leader already sent the stop request, an ended session is expected.
    if (last) break;
    if (page.ended !== null) return { state: "failed", problem: page.ended };
    await pause(pauseMs, awake);
  }
  const problem = await notifyServer();
  faultPoint("voice.after_stop");
  return { state: "stopped", problem };

  async function poll(): Promise<UpdatePage | { problem: string; tooLarge: boolean }> {
    try {
      const args = { session_id: sttSessionId, since_seq: sinceSeq, limit };
      const value = await stt.call(place, "updates", args, signal);
      return parseUpdatePage(value, sinceSeq, limit);
    } catch (error) {
      if (WireError.is(error)) throw error;
      const tooLarge = error instanceof SttError && WireError.is(error.cause, "TOO_LARGE");
      return { problem: error instanceof Error ? error.message : String(error), tooLarge };
    }
  }

  /** The problem, or null on success. */
  async function notifyServer(): Promise<string | null> {
    for (let tried = 1; ; tried++) {
      try {
        await stt.call(place, "stop", { session_id: sttSessionId }, signal);
        return null;
      } catch (error) {
        if (!(error instanceof SttError)) throw error;
        log.warn(
          { voiceId, mcp: voice.server, reason: error.message, attempts: tried },
          "voice server not stopped: request failed",
        );
        if (tried >= stopTries) return `the stop request did not reach the server: ${error.message}`;
        await pause(pauseMs, signal);
      }
    }
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => undefined);
}
