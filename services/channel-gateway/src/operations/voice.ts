// /voice: speech input for this conversation, and spoken answers.
import { setTimeout as delay } from "node:timers/promises";
import { controlVoice, store, type OutputOf, type VoiceSession } from "@parley/contracts";
import { nameUuid } from "@parley/kit";
import { answerOf, ServiceUnavailableError } from "./session-service.ts";
import { currentSession, CommandError, type Command, type Invocation } from "./hand-written.ts";
import { UsageError } from "./operation.ts";
import { eventLine, outcomeText, repliesText, statusText, stopText } from "./voice-text.ts";

/** The leader takes up to 8 s to answer a start; the rest covers a change of the leader. */
const startTimeoutMs = 12_000;
const askTimeoutMs = 15_000;
/** How long `/voice stop` waits for the speech server to confirm; voice ends in either case. */
const stopWaitMs = 3_000;
const stopPollMs = 100;
const events = { shown: 20, most: 100 };

async function start(invocation: Invocation): Promise<string> {
  const { deps, speaker } = invocation;
  const source = sourceOf(invocation.argumentText.replace(/^\S+\s*/, "") || "microphone");
  const { channel, account, conversation, contact, role, replyTo, direct } = speaker;
  const heard = source === "loopback" ? deps.settings.voice.loopback_role : role;
  const { opened, voice } = await deps.bus.request(store.voiceOpen, {
    opId: nameUuid(`voice:${speaker.ref}`),
    route: speaker.route,
    source,
    sender: { channel, account, conversation, contact, role: heard, origin: "user", direct },
    replyTo: replyTo === null ? null : { ...replyTo, replyToId: undefined },
  });
  if (!opened) throw new CommandError(`${statusText(voice, Date.now())} /voice stop ends it.`);
  const { voiceId } = voice;
  // A repeated request is the same start, also for a new leader.
  const asked = deps.bus.request(controlVoice, { do: "start", voiceId }, { timeoutMs: startTimeoutMs });
  try {
    const { voice: begun } = await answerOf("agent-core", asked);
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

async function stop({ deps, speaker }: Invocation): Promise<string> {
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

async function look(invocation: Invocation, count: number): Promise<OutputOf<typeof store.voiceGet>> {
  const { deps, speaker } = invocation;
  return deps.bus.request(store.voiceGet, { route: speaker.route, events: count });
}

async function status(invocation: Invocation): Promise<string> {
  const { voice } = await look(invocation, 0);
  if (voice === null) return "Voice has not been used in this conversation. /voice start starts it.";
  const words = statusText(voice, Date.now());
  if (voice.state !== "listening") return words;
  const order = { do: "status" as const, voiceId: voice.voiceId };
  // Without a leader the state from the store is still shown.
  const asked = await invocation.deps.bus
    .request(controlVoice, order, { timeoutMs: askTimeoutMs, attemptMs: askTimeoutMs })
    .catch(() => null);
  return asked === null || asked.text === null ? words : `${words}\nReport of the server: ${asked.text}`;
}

async function showEvents(invocation: Invocation, named: string | undefined): Promise<string> {
  const count = named === undefined ? events.shown : Number(named);
  if (!Number.isInteger(count) || count < 1) throw new UsageError(`"${named ?? ""}" is not a valid number of events.`);
  const { voice, events: heard } = await look(invocation, Math.min(count, events.most));
  if (voice === null || heard.length === 0) return "No voice events yet.";
  return heard.map(eventLine).join("\n");
}

async function devices({ deps }: Invocation): Promise<string> {
  const asked = deps.bus.request(controlVoice, { do: "devices" }, { timeoutMs: askTimeoutMs, attemptMs: askTimeoutMs });
  return (await answerOf("agent-core", asked)).text ?? "";
}

async function replies(invocation: Invocation, named: string | undefined): Promise<string> {
  const { deps, speaker } = invocation;
  const configured = deps.settings.voice.speech !== undefined;
  switch (named?.toLowerCase()) {
    case undefined:
    case "status": {
      const session = await currentSession(invocation);
      return repliesText(session.overrides.voiceReplies === true, { configured, sent: speaker.replyTo !== null });
    }
    case "on":
    case "off": {
      const on = named?.toLowerCase() === "on";
      if (on && !configured) {
        throw new CommandError(
          "No speech service is configured. Add [voice.speech] with url and model to parley.toml.",
        );
      }
      const { sessionId } = await deps.acts.ensure(speaker.route, speaker.ref);
      await deps.acts.override(sessionId, { voiceReplies: on ? true : null });
      return repliesText(on, { configured, sent: speaker.replyTo !== null });
    }
    default:
      throw new UsageError(`Unknown argument: /voice replies ${named ?? ""}.`);
  }
}

export const voiceCommands: readonly Command[] = [
  {
    name: "/voice",
    usage:
      "/voice [start [microphone|loopback|<device>] | stop | status | events [n] | devices | replies on|off|status]",
    summary: "speak to this conversation by microphone, and get spoken answers",
    keepsWindow: true,
    async run(invocation) {
      const [what = "status", named] = invocation.words;
      switch (what.toLowerCase()) {
        case "start":
          return start(invocation);
        case "stop":
          return stop(invocation);
        case "status":
          return status(invocation);
        case "events":
          return showEvents(invocation, named);
        case "devices":
          return devices(invocation);
        case "replies":
          return replies(invocation, named);
        default:
          throw new UsageError(`Unknown subcommand: /voice ${what}.`);
      }
    },
  },
];
