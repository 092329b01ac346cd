// Builds the request of a committed model call again, from the session's log and what the call's step records. The recorded digest
// tells whether it is the request that was sent.
import type { Bus } from "@parley/bus";
import {
  controlModelRequest,
  store,
  type InputOf,
  type Message,
  type OutputOf,
  type ViewRecord,
} from "@parley/contracts";
import { viewMessages } from "../compaction/view-messages.ts";
import { buildPrompt, withoutToolTraffic } from "../prompt/build-prompt.ts";
import { fingerprints, requestDigest } from "../session/prefix-check.ts";
import type { Prefixes } from "../session/prefix.ts";
import { briefMs, type LeaderStore } from "../store-client/leader-store.ts";

interface Rebuilt {
  model: string;
  exact: boolean;
  note: string | null;
  text: string | null;
}

const notRecorded = "The call was made before Parley recorded its requests.";
const withoutPrefix = "The system prompt and the tools of this call are no longer stored.";
const withoutView = "What this call was shown of the conversation before a later compaction is no longer stored.";
const changed =
  "Built from the messages that are stored; it differs from the request that was sent, for example because a message was changed or left out for its length.";

/** So that one answer fits in one reply of the bus, also with characters that JSON escapes. */
const partCharacters = 150_000;

/** Shows requests of earlier model calls. */
export class SentRequests {
  readonly #leaderStore: LeaderStore;
  readonly #prefixes: Prefixes;
  /** Callers read the parts of one request after another. */
  #last: { key: string; rebuilt: Rebuilt } | undefined;

  constructor(leaderStore: LeaderStore, prefixes: Prefixes) {
    this.#leaderStore = leaderStore;
    this.#prefixes = prefixes;
  }

  serve(bus: Bus): ReturnType<Bus["serve"]> {
    return bus.serve(controlModelRequest, (input) => this.#part(input));
  }

  async #part(input: InputOf<typeof controlModelRequest>): Promise<OutputOf<typeof controlModelRequest>> {
    const { turnId, step, offset } = input;
    const key = `${turnId} ${step}`;
    const known = this.#last?.key === key && offset > 0 ? this.#last.rebuilt : undefined;
    const rebuilt = known ?? (await this.#rebuild(turnId, step));
    this.#last = { key, rebuilt };
    const { text } = rebuilt;
    const length = text?.length ?? 0;
    return { ...rebuilt, text: text?.slice(offset, offset + partCharacters) ?? null, length };
  }

  async #rebuild(turnId: string, n: number): Promise<Rebuilt> {
    const found = await this.#leaderStore.request(store.stepRequest, { turnId, n }, { timeoutMs: briefMs });
    const { model, record, view, sessionId, messageSeq } = found;
    const without = (note: string): Rebuilt => ({ model, exact: false, note, text: null });
    if (record === null) return without(notRecorded);
    const prefix = await this.#prefixes.load(record.prefixHash);
    if (prefix === undefined) return without(withoutPrefix);
    if (view === null && record.viewVersion > 0) return without(withoutView);
    const log = await this.#messages(sessionId, view, messageSeq);
    const visible = viewMessages(view, log);
    const shown = record.textOnly ? withoutToolTraffic(visible, turnId) : visible;
    const messages = buildPrompt(shown, record.headings ?? undefined);
    const { parameters } = record;
    const exact = requestDigest(fingerprints(prefix.hash, messages), parameters) === record.digest;
    const { system, tools } = prefix;
    const text = JSON.stringify({ system, tools, messages, parameters });
    return { model, exact, note: exact ? null : changed, text };
  }

  /** The messages before `endSeq` that a view record shows, in order. */
  async #messages(sessionId: string, view: ViewRecord | null, endSeq: number): Promise<Message[]> {
    const head = view === null || view.keepFirstTo === 0 ? [] : await this.#range(sessionId, 0, view.keepFirstTo + 1);
    const from = Math.max((view?.fromSeq ?? 0) - 1, view?.keepFirstTo ?? 0, 0);
    return [...head, ...(await this.#range(sessionId, from, endSeq))];
  }

  async #range(sessionId: string, afterSeq: number, endSeq: number): Promise<Message[]> {
    const messages: Message[] = [];
    let after = afterSeq;
    for (;;) {
      const range = { sessionId, afterSeq: after, limit: 1_000 };
      const page = await this.#leaderStore.request(store.sessionMessages, range, { timeoutMs: briefMs });
      messages.push(...page.messages.filter(({ seq }) => seq < endSeq));
      const last = page.messages.at(-1)?.seq ?? endSeq;
      if (!page.more || last >= endSeq) return messages;
      after = last;
    }
  }
}
