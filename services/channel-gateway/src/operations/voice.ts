// Voice: speech input of a conversation, and spoken answers.
import { setTimeout as delay } from "node:timers/promises";
import { controlVoice, operations, store, type VoiceSession } from "@parley/contracts";
import { nameUuid } from "@parley/kit";
import { implement, OperationError, type OperationCall } from "./operation.ts";
import { awaitService, ServiceUnavailableError } from "./session-service.ts";
import { eventLine, outcomeText, repliesText, statusText, stopText } from "./voice-text.ts";

/** The leader takes up to 8 s to answer a start; the rest covers a change of the leader. */
const startTimeoutMs = 12_000;
const askTimeoutMs = 15_000;
/** How long `/voice stop` waits for the speech server to confirm; voice ends in either case. */
const stopWaitMs = 3_000;
const stopPollMs = 100;
const maxEvents = 100;

async function start({ deps, speaker }: OperationCall, named: string): Promise<string> {
  const source = sourceOf(named);
  const { channel, account, conversation, contact, role, replyTo, direct } = speaker;
  const voiceRole = source === "loopback" ? deps.settings.voice.loopback_role : role;
  const { opened, voice } = await deps.bus.request(store.voiceOpen, {
    opId: nameUuid(`voice:${speaker.ref}`),
    route: speaker.route,
    source,
    sender: { channel, account, conversation, contact, role: voiceRole, origin: "user", direct, spoken: true },
    replyTo: replyTo === null ? null : { ...replyTo, replyToId: undefined },
  });
  if (!opened) throw new OperationError("conflict", `${statusText(voice, Date.now())} /voice stop ends it.`);
  const { voiceId } = voice;
  // A repeated request is the same start, also for a new leader.
  const response = deps.bus.request(controlVoice, { do: "start", voiceId }, { timeoutMs: startTimeoutMs });
  try {
    const { voice: begun } = await awaitService("agent-core", response);
    return outcomeText(begun ?? voice);
  } catch (error) {
    if (!(error instanceof ServiceUnavailableError)) throw error;
    const { voice: now } = await deps.bus.request(store.voiceGet, { voiceId, events: 0 });
    if (now !== null && now.state !== "starting") return outcomeText(now);
    return "No agent-core is responding. Voice starts when one is back, and I will report it here; /voice stop cancels it.";
  }
}

/** Two source names are known to every server and match in any case; any other text is a device name. */
function sourceOf(source: string): string {
  const word = source.toLowerCase();
  return word === "microphone" || word === "loopback" ? word : source.slice(0, 200);
}

async function stop({ deps, speaker }: OperationCall): Promise<string> {
  const { voice } = await deps.bus.request(store.voiceStop, { route: speaker.route });
  if (voice === null) return "Voice is not running here.";
  const deadline = performance.now() + stopWaitMs;
  let now: VoiceSession | null = voice;
  while (now?.state === "stopping" && performance.now() < deadline) {
    await delay(stopPollMs);
    now = (await deps.bus.request(store.voiceGet, { voiceId: voice.voiceId, events: 0 })).voice;
  }
  return stopText(now ?? voice);
}

async function status({ deps, speaker }: OperationCall): Promise<string> {
  const { voice } = await deps.bus.request(store.voiceGet, { route: speaker.route, events: 0 });
  if (voice === null) return "Voice has not been used in this conversation. /voice start starts it.";
  const words = statusText(voice, Date.now());
  if (voice.state !== "listening") return words;
  const order = { do: "status" as const, voiceId: voice.voiceId };
  // Without a leader the state from the store is still shown.
  const report = await deps.bus
    .request(controlVoice, order, { timeoutMs: askTimeoutMs, attemptMs: askTimeoutMs })
    .catch(() => null);
  return report === null || report.text === null ? words : `${words}\nReport of the server: ${report.text}`;
}

async function replies(call: OperationCall, on: boolean | undefined): Promise<string> {
  const { deps, speaker } = call;
  const where = { configured: deps.settings.voice.speech !== undefined, sent: speaker.replyTo !== null };
  if (on === undefined) {
    const session = await call.session(speaker.route);
    return repliesText(session.overrides.voiceReplies === true, where);
  }
  if (on && !where.configured) {
    throw new OperationError(
      "conflict",
      "no speech service is configured; add [voice.speech] with url and model to parley.toml",
    );
  }
  const { sessionId } = await call.ensureSession(speaker.route);
  await deps.acts.override(sessionId, { voiceReplies: on ? true : null });
  return repliesText(on, where);
}

export const voiceOperations = [
  implement(operations.voiceStart, ({ source }, call) => start(call, source)),
  implement(operations.voiceEnd, (_input, call) => stop(call)),
  implement(operations.voiceStatus, (_input, call) => status(call)),
  implement(operations.voiceReplies, ({ on }, call) => replies(call, on)),

  implement(operations.voiceEvents, async ({ count }, { deps, speaker }) => {
    const events = Math.min(count, maxEvents);
    const found = await deps.bus.request(store.voiceGet, { route: speaker.route, events });
    if (found.voice === null || found.events.length === 0) return "No voice events yet.";
    return found.events.map(eventLine).join("\n");
  }),

  implement(operations.voiceDevices, async (_input, { deps }) => {
    const response = deps.bus.request(
      controlVoice,
      { do: "devices" },
      { timeoutMs: askTimeoutMs, attemptMs: askTimeoutMs },
    );
    return (await awaitService("agent-core", response)).text ?? "";
  }),
];
