// A constant load: clients of the OpenAI API, which repeat a request with its idempotency key as the published client does, and people
// who write to a Telegram bot. Messages are sent at their time, however long earlier answers take.
import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { errorMessage } from "@parley/contracts";
import type { TelegramPeer } from "@parley/testing";
import OpenAI, { APIError } from "openai";

export interface Refusal {
  /** The HTTP status; null: the connection failed or no answer came in time. */
  status: number | null;
  hasRetryAfter: boolean;
  reason: string;
}

/** One message and its answer. Times are those of `performance.now()`. */
export interface Sample {
  kind: "openai" | "telegram";
  /** The text of the expected answer. */
  id: string;
  /** The message runs a command with a side effect, which appends to the file of its id. */
  hasEffect: boolean;
  sentAtMs: number;
  answeredAtMs: number | null;
  /** Why the client gave up, or which wrong answer it got. */
  problem: string | null;
  /** The attempts that were repeated. */
  refusals: Refusal[];
}

export interface LoadOptions {
  url: string;
  token: string;
  /** Messages a second. */
  rate: number;
  /** Without it, all messages are requests of OpenAI clients. */
  telegram?: TelegramPeer | undefined;
}

export interface Load {
  /** All messages, in the order in which they were sent. */
  readonly samples: readonly Sample[];
  /** Resolves when every message that was sent before this time is answered or given up. */
  settled(beforeMs: number): Promise<void>;
  /** Sends no more messages, and resolves when all are answered or given up. Rejects with a failure of the load itself. */
  stop(): Promise<void>;
}

/** The people who write to the bot. */
export const telegramPeople = Array.from({ length: 20 }, (_, index) => index + 1);
/** Of the messages, at most this share and rate are texts to the bot: one bot may send 30 messages a second. */
const telegramShare = 0.25;
const maxTelegramRate = 5;
const effectShare = 0.1;
const attemptTimeoutMs = 60_000;
/** After this time a message without an answer counts as lost. */
const giveUpMs = 120_000;
/** A conversation gets this many messages, so that its history remains short. */
const messagesPerConversation = 20;
const openConversations = 100;
const repeatPauseMs = 250;
const answerPollMs = 20;
const repeatedStatuses: ReadonlySet<number> = new Set([408, 409, 429]);

export function startLoad(options: LoadOptions): Load {
  const { rate, telegram } = options;
  const openai = new OpenAI({
    baseURL: `${options.url}/v1`,
    apiKey: options.token,
    maxRetries: 0,
    timeout: attemptTimeoutMs,
  });
  const samples: Sample[] = [];
  const open = new Set<Promise<void>>();
  const stopping = new AbortController();
  const begin = (kind: Sample["kind"], send: (sample: Sample, number: number) => Promise<void>): void => {
    const number = samples.length;
    const sample: Sample = {
      kind,
      id: `load-${number}-${randomUUID().slice(0, 8)}`,
      hasEffect: kind === "openai" && number % Math.round(1 / effectShare) === 0,
      sentAtMs: performance.now(),
      answeredAtMs: null,
      problem: null,
      refusals: [],
    };
    samples.push(sample);
    const work = send(sample, number)
      .catch((error: unknown) => void (sample.problem = errorMessage(error)))
      .finally(() => open.delete(work));
    open.add(work);
  };
  const paced = async (perSecond: number, one: () => void): Promise<void> => {
    const startedMs = performance.now();
    for (let number = 1; !stopping.signal.aborted; number += 1) {
      one();
      const waitMs = startedMs + (number * 1_000) / perSecond - performance.now();
      await delay(Math.max(0, waitMs), undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  };
  const telegramRate = telegram === undefined ? 0 : Math.min(rate * telegramShare, maxTelegramRate);
  const work = [paced(rate - telegramRate, () => begin("openai", (...args) => ask(openai, ...args)))];
  if (telegram !== undefined) {
    const answers = new TelegramAnswers(telegram);
    work.push(paced(telegramRate, () => begin("telegram", (...args) => answers.write(...args))));
  }
  const finished = Promise.all(work);
  finished.catch(() => undefined);
  const settled = async (beforeMs: number): Promise<void> => {
    const isOpen = (sample: Sample) =>
      sample.sentAtMs < beforeMs && sample.answeredAtMs === null && sample.problem === null;
    while (samples.some(isOpen)) await Promise.race([...open, delay(100)]);
  };
  return {
    samples,
    settled,
    async stop() {
      stopping.abort();
      await finished;
      await settled(Infinity);
    },
  };
}

/** One request, repeated with its key until it is answered. */
async function ask(openai: OpenAI, sample: Sample, number: number): Promise<void> {
  const { id } = sample;
  const effect = `tool: exec {"command":"echo x >> effects/${id}"}\nthen\n`;
  const content = `${sample.hasEffect ? effect : ""}say: ${id}`;
  const round = Math.floor(number / (messagesPerConversation * openConversations));
  const body = {
    model: "parley",
    user: `load-${round}-${number % openConversations}`,
    messages: [{ role: "user" as const, content }],
  };
  for (;;) {
    try {
      const completion = await openai.chat.completions.create(body, { headers: { "idempotency-key": id } });
      const answer = completion.choices[0]?.message.content ?? "";
      sample.answeredAtMs = performance.now();
      if (answer !== id) sample.problem = `answered "${answer.slice(0, 100)}"`;
      return;
    } catch (error) {
      if (!(error instanceof APIError)) throw error;
      const status = typeof error.status === "number" ? error.status : null;
      const retryAfter = (error.headers as Headers | undefined)?.get("retry-after") ?? null;
      if (status !== null && status < 500 && !repeatedStatuses.has(status)) throw error;
      sample.refusals.push({ status, hasRetryAfter: retryAfter !== null, reason: errorMessage(error) });
      if (performance.now() - sample.sentAtMs > giveUpMs) throw error;
      await delay(retryAfter === null ? repeatPauseMs : Number(retryAfter) * 1_000);
    }
  }
}

/** Finds the answers among the texts that people see. */
class TelegramAnswers {
  readonly #telegram: TelegramPeer;
  readonly #seen = new Set<string>();
  #read = 0;

  constructor(telegram: TelegramPeer) {
    this.#telegram = telegram;
  }

  async write(sample: Sample, number: number): Promise<void> {
    this.#telegram.say(`say: ${sample.id}`, { from: telegramPeople[number % telegramPeople.length] ?? 1 });
    while (!this.#wasSeen(sample.id)) {
      if (performance.now() - sample.sentAtMs > giveUpMs) throw new Error("no answer");
      await delay(answerPollMs);
    }
    sample.answeredAtMs = performance.now();
  }

  #wasSeen(id: string): boolean {
    for (const { text } of this.#telegram.sent.slice(this.#read)) this.#seen.add(text);
    this.#read = this.#telegram.sent.length;
    return this.#seen.delete(id);
  }
}
