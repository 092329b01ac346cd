// A fake chat platform: it allows one connection per account, delivers messages until they are acknowledged, and records sent texts. Each
// replica has its own adapter.
import type {
  ChannelAdapter,
  ChannelHost,
  LeaseRef,
  InboundDraft,
  OutboundPart,
  SendOutcome,
} from "../../src/channels/channel.ts";
import type { ChannelAccount } from "../../src/accounts/hosted-account.ts";
import type { PeoplePolicy } from "@parley/contracts";

export interface ReceivedText {
  conversation: string;
  group?: string;
  opensThread?: true;
  from: string;
  text: string;
  direct?: boolean;
  addressed?: boolean;
}

const nobody: PeoplePolicy = {
  owners: [],
  allow_from: [],
  dm_policy: "pairing",
  groups: [],
  require_mention: true,
};

export class Platform {
  /** Texts that tell the owner who asks for access; they go to the address that an owner of any account used last. */
  readonly accessRequests: string[] = [];
  readonly sent: { conversation: string; text: string }[] = [];
  /** Conversations in which the typing indicator was shown. */
  readonly typing: string[] = [];
  /** Conversations in which the typing indicator was hidden. */
  readonly typingEnded: string[] = [];
  /** The replicas whose adapter connected, in order. */
  readonly owners: string[] = [];
  /** The maximum number of simultaneous connections. */
  mostAtOnce = 0;
  /** Decides the outcome of a send; null: sent. */
  fate: (message: OutboundPart) => Promise<SendOutcome | null> = async () => null;
  readonly #name: string;
  #open = 0;
  #counter = 0;
  readonly #queue: { id: number; said: ReceivedText }[] = [];
  #wake: (() => void)[] = [];

  /** `name`: the account. */
  constructor(name: string) {
    this.#name = name;
  }

  /** A replica holds the connection. */
  get isConnected(): boolean {
    return this.#open > 0;
  }

  /** Adds a message of a person. */
  say(said: ReceivedText): void {
    this.#queue.push({ id: ++this.#counter, said });
    this.#changed();
  }

  /** Resolves when a condition holds; checked after every change. */
  async until(holds: () => boolean): Promise<void> {
    while (!holds()) await new Promise<void>((resolve) => this.#wake.push(resolve));
  }

  account(people: Partial<PeoplePolicy>, replica = "one", more: Partial<ChannelAdapter> = {}): ChannelAccount {
    const adapter: ChannelAdapter = {
      channel: "test",
      account: this.#name,
      capabilities: {
        text: { format: "plain", maxLength: 1_000, lengthUnit: "utf16", lengthCountsMarkup: false },
        supportsIdempotentSend: false,
        typing: true,
        files: false,
        actions: false,
      },
      ownedConnection: true,
      connect: (host, lease) => this.#connect(replica, host, lease),
      send: (message, signal) => this.#send(message, signal),
      typing: async ({ conversation }) => {
        this.typing.push(conversation);
        this.#changed();
      },
      stopTyping: async ({ conversation }) => {
        this.typingEnded.push(conversation);
        this.#changed();
      },
      ...more,
    };
    return { adapter, people: { ...nobody, ...people } };
  }

  async #connect(replica: string, host: ChannelHost, lease: LeaseRef): Promise<void> {
    this.owners.push(replica);
    this.#open++;
    this.mostAtOnce = Math.max(this.mostAtOnce, this.#open);
    this.#changed();
    const gone = new Promise<void>((resolve) =>
      lease.signal.addEventListener("abort", () => resolve(), { once: true }),
    );
    try {
      let cursor = Number(lease.cursor ?? 0);
      while (!lease.signal.aborted) {
        const next = this.#queue.find(({ id }) => id > cursor);
        if (next === undefined) {
          await Promise.race([gone, new Promise<void>((resolve) => this.#wake.push(resolve))]);
          continue;
        }
        await host.accept(this.#draftOf(next.id, next.said), { lease, cursor: String(next.id) });
        cursor = next.id;
        this.#changed();
      }
    } finally {
      this.#open--;
      this.#changed();
    }
  }

  async #send(message: OutboundPart, signal: AbortSignal): Promise<SendOutcome> {
    if (signal.aborted) return { state: "retry", afterMs: 1_000, reason: "cancelled before it was sent" };
    if (message.address.conversation === "") return { state: "dropped", reason: "the conversation has no name" };
    const fate = await this.fate(message);
    if (fate !== null) return fate;
    const text = message.text?.plain ?? "";
    if (text.includes("asks for access")) {
      this.accessRequests.push(text);
      return { state: "sent", providerMessageId: null };
    }
    this.sent.push({ conversation: message.address.conversation, text });
    this.#changed();
    return { state: "sent", providerMessageId: `p-${this.sent.length}` };
  }

  #changed(): void {
    const wake = this.#wake;
    this.#wake = [];
    for (const each of wake) each();
  }

  #draftOf(
    id: number,
    { conversation, group, opensThread, from, text, direct = true, addressed = direct }: ReceivedText,
  ): InboundDraft {
    return {
      externalId: String(id),
      conversation,
      ...(group === undefined ? {} : { group }),
      ...(opensThread === undefined ? {} : { opensThread }),
      contact: { id: from, name: `Name of ${from}` },
      direct,
      addressed,
      text,
      replyTo: { channel: "test", account: this.#name, conversation, replyToId: String(id) },
    };
  }
}
