// Manages all voice sessions of the leader: starts each once, polls it, continues sessions of the previous leader, and ends them. The
// store holds the state; this class keeps nothing that cannot be rebuilt.
import { setTimeout as delay } from "node:timers/promises";
import { faultPoint } from "@parley/chassis";
import { newId, sessionEvent, store, WireError, type InputOf, type VoiceSession } from "@parley/contracts";
import { hasBegun, pollUtterances, type BegunVoice, type ListenerDeps } from "./poll-utterances.ts";
import { devicesOf, sourceArguments, startedSession } from "./stt-responses.ts";
import { SttError } from "./stt.ts";
import { failedText, listensText } from "./texts.ts";

/** How long a caller waits for a session to start; the outcome of a slower start is posted in the chat. */
const answerMs = 8_000;
/** Sessions requested longer ago no longer have a waiting caller. */
const orderedMsAgo = 10_000;

export interface VoiceSessionDeps extends ListenerDeps {
  /** Called when another agent-core is the leader. */
  lost: (reason: string) => void;
}

interface Attempt {
  done: Promise<void>;
  /** Whether a caller waits for the outcome as a reply. */
  awaited: boolean;
  /** End of the wait, on the monotonic clock; a later outcome is posted in the chat. */
  patientUntilMs: number;
}

interface Listening {
  stop(): void;
  done: Promise<void>;
}

type To = Exclude<InputOf<typeof store.voiceMove>["to"], { state: "claimed" }>;

export class VoiceSessionManager {
  readonly #deps: VoiceSessionDeps;
  readonly #attempts = new Map<string, Attempt>();
  readonly #listening = new Map<string, Listening>();

  constructor(deps: VoiceSessionDeps) {
    this.#deps = deps;
  }

  /** Picks up all unfinished sessions: those of the previous leader, unclaimed requests, and sessions to be stopped. */
  async look(): Promise<void> {
    const { bus, signal } = this.#deps;
    const { voices } = await bus.request(store.voiceWork, { orderedMsAgo }, { signal });
    for (const voice of voices) {
      if (this.#attempts.has(voice.voiceId)) continue;
      const listener = this.#listening.get(voice.voiceId);
      if (listener !== undefined) {
        if (voice.state === "stopping") listener.stop();
      } else if (hasBegun(voice)) this.#listen(voice);
      else if (!voice.claimed) this.#begin(voice.voiceId, false);
      else await this.#unknown(voice, false);
    }
  }

  /** Starts a session once; returns its state when started, or after a timeout. */
  async start(voiceId: string): Promise<VoiceSession | null> {
    const attempt = this.#begin(voiceId, true);
    const patience = new AbortController();
    const leftMs = Math.max(0, attempt.patientUntilMs - performance.now());
    const inTime = await Promise.race([
      attempt.done.then(() => true),
      delay(leftMs, false, { signal: patience.signal }).catch(() => false),
    ]);
    patience.abort();
    if (!inTime) attempt.awaited = false;
    return this.#get(voiceId);
  }

  /** The server's status of a session, shortened for a chat. */
  async status(voiceId: string): Promise<{ voice: VoiceSession | null; text: string | null }> {
    const voice = await this.#get(voiceId);
    if (voice === null || !hasBegun(voice) || voice.state !== "listening") return { voice, text: null };
    return { voice, text: await this.#serverStatus(voice) };
  }

  async devices(): Promise<string> {
    const { stt, signal } = this.#deps;
    const found = await stt.find();
    if ("problem" in found) return found.problem;
    if (!found.has.includes("devices")) return `The MCP server ${found.server} does not list devices.`;
    try {
      const devices = devicesOf(await stt.call(found, "devices", {}, signal));
      if (devices.length === 0) return `The MCP server ${found.server} lists no devices.`;
      return devices
        .map(({ id, name }) => `- ${name ?? id ?? ""}${id === null || name === null ? "" : ` (${id})`}`)
        .join("\n");
    } catch (error) {
      if (error instanceof SttError) return `Listing the devices failed: ${error.message}`;
      throw error;
    }
  }

  /** Resolves when all work has ended, after the leader's signal aborted it. */
  async idle(): Promise<void> {
    await Promise.allSettled([...this.#attempts.values(), ...this.#listening.values()].map(({ done }) => done));
  }

  #begin(voiceId: string, awaited: boolean): Attempt {
    const known = this.#attempts.get(voiceId);
    if (known !== undefined) {
      known.awaited ||= awaited && performance.now() < known.patientUntilMs;
      return known;
    }
    const attempt: Attempt = { awaited, patientUntilMs: performance.now() + answerMs, done: Promise.resolve() };
    attempt.done = this.#guarded(voiceId, () => this.#attempt(voiceId, attempt)).finally(() =>
      this.#attempts.delete(voiceId),
    );
    this.#attempts.set(voiceId, attempt);
    return attempt;
  }

  /** Starts the session; the outcome is stored before it is reported. */
  async #attempt(voiceId: string, attempt: Attempt): Promise<void> {
    const { bus, epoch, storeTimeoutMs, signal } = this.#deps;
    const claim = { opId: newId(), epoch, voiceId, to: { state: "claimed" as const }, tell: null };
    const { moved: granted, voice } = await bus.request(store.voiceMove, claim, { timeoutMs: storeTimeoutMs, signal });
    if (voice === null) return;
    if (!granted) {
      // A previous leader died while it was starting this session.
      if (voice.state === "starting" || (voice.state === "stopping" && !hasBegun(voice)))
        await this.#unknown(voice, attempt.awaited);
      return;
    }
    faultPoint("voice.after_claim");
    const to = await this.#call(voice);
    faultPoint("voice.after_start");
    const text = to.state === "listening" ? listensText(voice) : failedText(to.problem ?? "", false);
    const moved = await this.#move(voice, to, attempt.awaited ? null : text);
    if (moved !== null && hasBegun(moved) && (moved.state === "listening" || moved.state === "stopping"))
      this.#listen(moved);
  }

  async #call({ source }: VoiceSession): Promise<To> {
    const { stt, signal } = this.#deps;
    const found = await stt.find();
    if ("problem" in found) return { state: "failed", problem: found.problem };
    try {
      const named = source !== "microphone" && source !== "loopback";
      const devices =
        named && found.has.includes("devices") ? devicesOf(await stt.call(found, "devices", {}, signal)) : [];
      const args = { ...stt.settings.start_arguments, ...sourceArguments(source, devices) };
      const sttSessionId = startedSession(await stt.call(found, "start", args, signal));
      return { state: "listening", server: found.server, sttSessionId, runner: found.shared ? null : found.runner };
    } catch (error) {
      if (WireError.is(error)) throw error;
      return { state: "failed", problem: error instanceof Error ? error.message : String(error) };
    }
  }

  #listen(voice: BegunVoice): void {
    const stopping = new AbortController();
    if (voice.state === "stopping") stopping.abort();
    const done = this.#guarded(voice.voiceId, async () => {
      const ending = await pollUtterances(this.#deps, voice, stopping.signal);
      if (ending === null) return;
      const text = ending.state === "failed" ? failedText(ending.problem, true) : null;
      await this.#move(voice, ending, text);
    }).finally(() => this.#listening.delete(voice.voiceId));
    this.#listening.set(voice.voiceId, { stop: () => stopping.abort(), done });
  }

  /** A leader died between its claim and the server's response: the server's state is unknown, and the start is not repeated. */
  async #unknown(voice: VoiceSession, awaited: boolean): Promise<void> {
    const problem =
      "the agent restarted while the session was starting. The server may still be listening: check it if it must not";
    await this.#move(voice, { state: "failed", problem }, awaited ? null : failedText(problem, false));
  }

  async #move(voice: VoiceSession, to: To, tell: string | null): Promise<VoiceSession | null> {
    const { bus, epoch, storeTimeoutMs, signal } = this.#deps;
    const { voiceId, replyTo } = voice;
    const order = { opId: newId(), epoch, voiceId, to, tell };
    const moved = await bus.request(store.voiceMove, order, { timeoutMs: storeTimeoutMs, signal });
    const sessionId = moved.voice?.sessionId ?? null;
    if (moved.moved && tell !== null && replyTo === null && sessionId !== null) {
      // Subscribers of the session see the notice now; /voice status shows it later.
      bus.publish(sessionEvent, { type: "notice", turnId: voiceId, text: tell }, { session: sessionId });
    }
    return moved.voice;
  }

  async #serverStatus({ server, runner, sttSessionId }: BegunVoice): Promise<string> {
    const { stt, signal } = this.#deps;
    try {
      const value = await stt.call({ server, runner }, "session", { session_id: sttSessionId }, signal);
      const plain = Object.entries(value).filter(([, each]) => each !== null && typeof each !== "object");
      return plain.map(([name, each]) => `${name}: ${String(each).slice(0, 80)}`).join(", ");
    } catch (error) {
      if (error instanceof SttError) return `The server's status is unavailable: ${error.message}`;
      throw error;
    }
  }

  async #get(voiceId: string): Promise<VoiceSession | null> {
    const { bus, signal } = this.#deps;
    return (await bus.request(store.voiceGet, { voiceId, events: 0 }, { signal })).voice;
  }

  /** Handles errors; the next sweep continues the session. */
  async #guarded(voiceId: string, work: () => Promise<void>): Promise<void> {
    const { log, lost, signal } = this.#deps;
    try {
      await work();
    } catch (error) {
      if (signal.aborted) return;
      if (WireError.is(error, "STALE_EPOCH")) lost("another agent-core became the leader");
      else log.error({ err: error, voiceId }, "voice session failed: retried by the next sweep");
    }
  }
}
