// Runs voice in the leader: processes voice sessions and spoken answers at start, periodically, and on hints of the store. Each sweep
// also finds what earlier ones missed.
import type { Bus } from "@parley/bus";
import type { Logger } from "@parley/chassis";
import { controlVoice, ineffectiveVoiceSettings, voiceChanged, WireError, type VoiceSettings } from "@parley/contracts";
import type { Synthesizer } from "./synthesizer.ts";
import { VoiceSessionManager } from "./session-manager.ts";
import { speakPending } from "./spoken-replies.ts";
import { Stt } from "./stt.ts";

/** Maximum delay after a lost hint. */
const sweepMs = 3_000;

export interface VoiceDeps {
  bus: Bus;
  log: Logger;
  epoch: number;
  settings: VoiceSettings;
  synthesizer: Synthesizer | null;
  storeTimeoutMs: number;
  lost: (reason: string) => void;
}

export interface Voice {
  /** Starts nothing further; resolves when all work has ended. The next leader continues the sessions. */
  stop(): Promise<void>;
}

export function startVoice(deps: VoiceDeps): Voice {
  const { bus, log, epoch, lost, storeTimeoutMs, settings, synthesizer } = deps;
  for (const problem of ineffectiveVoiceSettings(settings)) log.warn({ reason: problem }, "voice setting ignored");
  const ending = new AbortController();
  const { signal } = ending;
  const manager = new VoiceSessionManager({
    bus,
    log,
    epoch,
    stt: new Stt(bus, epoch, settings),
    storeTimeoutMs,
    signal,
    lost,
  });

  const guarded = (what: string, work: () => Promise<void>) => async () => {
    try {
      await work();
    } catch (error) {
      if (signal.aborted) return;
      if (WireError.is(error, "STALE_EPOCH")) lost("another agent-core became the leader");
      else log.warn({ err: error }, `${what}: retried by the next sweep`);
    }
  };
  const listening = oneAtATime(guarded("voice sessions not processed", () => manager.look()));
  const speaking = oneAtATime(
    guarded("spoken answers not processed", () =>
      speakPending({ bus, log, epoch, synthesizer, storeTimeoutMs, signal }),
    ),
  );
  const look = () => {
    if (signal.aborted) return;
    listening.run();
    speaking.run();
  };
  const changes = bus.subscribe(voiceChanged, {}, look);
  const control = bus.serve(controlVoice, async (order) => {
    if (order.do === "start") return { voice: await manager.start(order.voiceId), text: null };
    if (order.do === "status") return manager.status(order.voiceId);
    return { voice: null, text: await manager.devices() };
  });
  const timer = setInterval(look, sweepMs);
  look();
  return {
    async stop() {
      ending.abort();
      clearInterval(timer);
      changes.close();
      control.close();
      await Promise.all([listening.idle(), speaking.idle(), manager.idle()]);
    },
  };
}

/** Runs one call at a time; calls during a run cause one more run. */
function oneAtATime(work: () => Promise<void>): { run(): void; idle(): Promise<void> } {
  let running: Promise<void> = Promise.resolve();
  let busy = false;
  let again = false;
  const loop = async () => {
    busy = true;
    do {
      again = false;
      await work();
    } while (again);
    busy = false;
  };
  return {
    run() {
      if (busy) again = true;
      else running = loop();
    },
    idle: () => running,
  };
}
