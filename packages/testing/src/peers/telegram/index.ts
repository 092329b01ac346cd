// A strict fake of Telegram: the Bot API for one bot and, for the test, the people who write to it and the faults it can have.
// Tests with grammy, an independent client, check that it behaves like the real service.
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { shown } from "./message.ts";
import { createApiServer } from "./server.ts";
import { TelegramState, type ApiCall, type Fault, type Flood, type SentMessage, type Webhook } from "./state.ts";
import { deliverToWebhook } from "./webhook-delivery.ts";
import { closeServer } from "../close-server.ts";

export type { ApiCall, Fault, SentMessage };

export interface TelegramPeerOptions {
  token?: string;
  /** Default: a free port. */
  port?: number;
  username?: string;
  /** Milliseconds before the first retry of a refused webhook call. Default 20. */
  redeliveryMs?: number;
}

export interface ReceivedText {
  /** Default 42, which is also the chat id. */
  from?: number;
  /** Negative for a group. Default: the private chat with `from`. */
  chat?: number;
  threadId?: number;
  /** Fields of the message that replace or extend the usual ones. */
  fields?: Record<string, unknown>;
}

interface SentFile {
  kind: "photo" | "document" | "voice" | "audio" | "video";
  caption?: string;
  /** Fields next to `file_id` that describe the file. Default: its size. */
  fields?: Record<string, unknown>;
}

export interface TelegramPeer extends AsyncDisposable {
  /** The value for `api_root`. */
  readonly url: string;
  readonly port: number;
  readonly token: string;
  readonly bot: { readonly id: number; readonly username: string };
  /** Sends a message as a person. Returns the number of the update. */
  say(text: string, options?: ReceivedText): number;
  /** Sends a file as a person: `kind` and `fields` are those of the message, such as `document` with its `file_name`. */
  sendFile(content: Buffer, file: SentFile, options?: ReceivedText): number;
  /** Sends any other update, such as `edited_message` or an unknown kind. */
  push(kind: string, content: unknown): number;
  /** Presses a button of a message as a person; returns a function that waits for the answer to the press. */
  press(messageId: number, label: string, from?: number): () => Promise<string>;
  /** The menu of commands that the bot has set. */
  readonly commands: readonly { command: string; description: string }[];
  /** Queues a fault for the next call of `method` (`*`: any method). */
  fail(method: string, fault: Fault): void;
  /** Switches flood control on; null: off. */
  limit(flood: Flood | null): void;
  /** How often flood control has limited the bot, and the calls during that time: how long after its refusal each arrived. */
  readonly limited: TelegramState["limited"];
  /** Deletes a message of the bot, as a person may. */
  deleteSent(messageId: number): void;
  block(chat: number): void;
  /** Removes the chat. */
  remove(chat: number): void;
  /** The messages that users have seen, in order, including those that were never acknowledged to the sender. */
  readonly sent: readonly SentMessage[];
  /** Messages that the bot deleted; they are no longer in `sent`. */
  readonly deleted: readonly SentMessage[];
  /** The reactions that the bot set to messages, in order; null: removed. */
  readonly reactions: readonly { chatId: number | string; messageId: number; emoji: string | null }[];
  readonly calls: readonly ApiCall[];
  /** How often an update was delivered. */
  deliveries(updateId: number): number;
  /** Updates that are not confirmed yet. */
  readonly pending: number;
  /** How often one long poll ended another one. */
  readonly conflicts: number;
  readonly webhook: Webhook | null;
  /** Resolves with the messages once there are `count` of them. */
  untilSent(count: number): Promise<readonly SentMessage[]>;
  /** The same once none of them is a preview, which shows the beginning of an answer whose turn may still run. */
  untilAnswered(count: number): Promise<readonly SentMessage[]>;
  untilCalls(method: string, count: number): Promise<readonly ApiCall[]>;
  until<Value>(what: string, done: () => Value | null): Promise<Value>;
  close(): Promise<void>;
}

export async function startTelegramPeer(options: TelegramPeerOptions = {}): Promise<TelegramPeer> {
  const token = options.token ?? "7000001:AAStandInTokenOfAStandInBotForTests";
  const bot = { id: Number(token.split(":")[0]), username: options.username ?? "parley_bot" };
  const state = new TelegramState();
  const server = createApiServer(state, token, bot);
  server.listen(options.port ?? 0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const closing = new AbortController();
  const delivering = deliverToWebhook(state, options.redeliveryMs ?? 20, closing.signal);

  const peer: TelegramPeer = {
    url: `http://127.0.0.1:${port}`,
    port,
    token,
    bot,
    say: (text, options = {}) => state.push("message", messageOf(text, options, state.nextMessageId())),
    sendFile: (content, file, options = {}) => {
      const about = { file_id: state.addFile(content), file_unique_id: "u", file_size: content.length, ...file.fields };
      const message = messageOf("", options, state.nextMessageId());
      const { text: _, ...rest } = message;
      return state.push("message", {
        ...rest,
        [file.kind]: file.kind === "photo" ? [{ ...about, file_id: "thumbnail" }, about] : about,
        ...(file.caption === undefined ? {} : { caption: file.caption }),
      });
    },
    push: (kind, content) => state.push(kind, content),
    press: (messageId, label, from = 42) => {
      const message = state.sent.find((one) => one.messageId === messageId);
      const button = message?.buttons.find(({ text }) => text === label);
      if (message === undefined || button === undefined) throw new Error(`message ${messageId} has no button ${label}`);
      const id = `press-${state.presses.size + 1}`;
      state.presses.set(id, null);
      const person = { id: from, is_bot: false, first_name: `User ${from}` };
      state.push("callback_query", {
        id,
        from: person,
        message: shown(message, bot),
        chat_instance: "1",
        data: button.data,
      });
      return async () => state.until(`the answer to ${id}`, () => state.presses.get(id) ?? null);
    },
    fail: (method, fault) => state.addFault(method, fault),
    limit: (flood) => void (state.flood = flood),
    limited: state.limited,
    deleteSent: (messageId) => {
      const at = state.sent.findIndex((message) => message.messageId === messageId);
      if (at === -1) throw new Error(`there is no message ${messageId}`);
      state.sent.splice(at, 1);
      state.changed();
    },
    block: (chat) => void state.blocked.add(String(chat)),
    remove: (chat) => void state.missing.add(String(chat)),
    sent: state.sent,
    deleted: state.deleted,
    reactions: state.reactions,
    calls: state.calls,
    deliveries: (updateId) => state.deliveries.get(updateId) ?? 0,
    get pending() {
      return state.updates.length;
    },
    get conflicts() {
      return state.conflicts;
    },
    get commands() {
      return state.commands;
    },
    get webhook() {
      return state.webhook;
    },
    untilSent: (count) => state.until(`${count} messages`, () => (state.sent.length >= count ? state.sent : null)),
    untilAnswered: (count) =>
      state.until(`${count} complete messages`, () => {
        const isComplete = state.sent.every(({ text }) => !text.endsWith(" …"));
        return isComplete && state.sent.length >= count ? state.sent : null;
      }),
    untilCalls: (method, count) =>
      state.until(`${count} calls of ${method}`, () => {
        const calls = state.calls.filter((call) => call.method === method);
        return calls.length >= count ? calls : null;
      }),
    until: (what, done) => state.until(what, done),
    async close() {
      closing.abort();
      await closeServer(server);
      await delivering;
    },
    [Symbol.asyncDispose]: () => peer.close(),
  };
  return peer;
}

function messageOf(text: string, { from = 42, chat = from, threadId, fields }: ReceivedText, messageId: number) {
  const entities = entitiesIn(text);
  return {
    message_id: messageId,
    date: Math.floor(Date.now() / 1000),
    from: { id: from, is_bot: false, first_name: `User ${from}`, language_code: "en" },
    chat:
      chat > 0
        ? { id: chat, type: "private", first_name: `User ${chat}` }
        : { id: chat, type: "supergroup", title: "Group" },
    text,
    ...(entities.length === 0 ? {} : { entities }),
    ...(threadId === undefined ? {} : { message_thread_id: threadId, is_topic_message: true }),
    ...fields,
  };
}

/** The entities that Telegram itself detects in a text. */
function entitiesIn(text: string): { type: string; offset: number; length: number }[] {
  const found = [...text.matchAll(/(?<![\w@/])(?:\/[a-z0-9_]{1,32}(?:@\w{5,32})?|@\w{5,32})/gi)];
  return found.map(({ 0: word, index }) => ({
    type: word.startsWith("/") ? "bot_command" : "mention",
    offset: index,
    length: word.length,
  }));
}
