// A strict fake of the WhatsApp Cloud API: one business number, and for the test the people who write to it and the faults that it can have.
// Tests with two independent clients check that it behaves like the real service.
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { createGraphServer } from "./server.ts";
import {
  dayMs,
  WhatsAppState,
  type WhatsAppCall,
  type WhatsAppEndpoint,
  type WhatsAppFault,
  type WhatsAppMessage,
} from "./state.ts";
import { deliver, deliverPending, deliverStatus, platformJson, signatureOf, type StatusChange } from "./webhook.ts";
import { closeServer } from "../close-server.ts";

export type { WhatsAppMessage };

export interface WhatsAppPeerOptions {
  token?: string;
  appSecret?: string;
  /** Default: a free port. */
  port?: number;
  /** Milliseconds before the first repetition of a refused delivery. Default 20. */
  redeliveryMs?: number;
}

interface WhatsAppWritten {
  /** The number of the person. Default 491700000042. */
  from?: string;
  name?: string;
  /** Fields of the message that replace or extend the usual ones. */
  fields?: Record<string, unknown>;
}

/** A message in the form of a webhook. */
interface WhatsAppInbound {
  id: string;
  /** Undefined for a person without a visible number, who has only a `from_user_id`. */
  from: string | undefined;
  [field: string]: unknown;
}

export interface WhatsAppPeer extends AsyncDisposable {
  /** The value for `api_root`. */
  readonly url: string;
  readonly token: string;
  readonly appSecret: string;
  readonly phoneNumberId: string;
  readonly displayPhoneNumber: string;
  /** Verifies the address as the platform does and delivers there. Rejects when the challenge is not answered. */
  subscribe(url: string, verifyToken: string): Promise<void>;
  /** Delivers to an address without verification. */
  webhook(url: string | null): void;
  /** Builds a message without sending it. It opens the window of its person. */
  message(type: string, content: object, written?: WhatsAppWritten): WhatsAppInbound;
  /** A person writes; returns the message's id. */
  say(text: string, written?: WhatsAppWritten): string;
  /** A person sends a file; `fields` describe it, such as `caption` or `filename`. */
  sendMedia(type: string, content: Buffer, mediaType: string, fields?: object, written?: WhatsAppWritten): string;
  /** A person presses a button or a row of a message that the business sent. */
  press(messageId: string, title: string, written?: WhatsAppWritten): string;
  /** Delivers several messages in one request, in one change each unless `together`. `phoneNumberId`: for another number. */
  batch(messages: readonly WhatsAppInbound[], options?: { together?: boolean; phoneNumberId?: string }): void;
  /** Reports a status of a message. */
  status(change: StatusChange): void;
  /** The body and signature of a request with any content. */
  signed(content: unknown): { body: string; signature: string };
  /** Ends the 24-hour window of a person. `status`: late messages are accepted and fail by a status. */
  endWindow(person: string, refuses?: "response" | "status"): void;
  /** Opens the window of a person without a message. */
  openWindow(person: string): void;
  /** Approves a template in a language with this number of body parameters. */
  approveTemplate(name: string, language: string, parameters: number): void;
  /** Ends the download addresses that were given out. */
  expireMedia(): void;
  /** Adds a fault to the next call of an endpoint. */
  fail(endpoint: WhatsAppEndpoint, fault: WhatsAppFault): void;
  /** What people have received, in order, including messages that were never acknowledged to the sender. */
  readonly sent: readonly WhatsAppMessage[];
  readonly calls: readonly WhatsAppCall[];
  /** Message ids that were marked as read, and those with a typing indicator. */
  readonly read: ReadonlySet<string>;
  readonly typing: readonly string[];
  /** How many messages people received more than once, by the sender's own key. */
  readonly duplicates: number;
  /** How often a message or status (`<id>:<status>`) was delivered. */
  deliveries(id: string): number;
  /** Requests that are not acknowledged yet. */
  readonly pending: number;
  untilSent(count: number): Promise<readonly WhatsAppMessage[]>;
  until<Value>(what: string, done: () => Value | null): Promise<Value>;
  close(): Promise<void>;
}

const person = "491700000042";

export async function startWhatsAppPeer(options: WhatsAppPeerOptions = {}): Promise<WhatsAppPeer> {
  const token = options.token ?? "EAAStandInTokenOfAStandInSystemUser";
  const appSecret = options.appSecret ?? "0123456789abcdef0123456789abcdef";
  const number = {
    phoneNumberId: "106540352242922",
    displayPhoneNumber: "15550783881",
    businessAccountId: "102290129340398",
  };
  const state = new WhatsAppState(number);
  const server = createGraphServer(state, token);
  server.listen(options.port ?? 0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const closing = new AbortController();
  const delivering = deliverPending(state, appSecret, options.redeliveryMs ?? 20, closing.signal);

  const names = new Map<string, string>();
  const valueOf = (messages: readonly WhatsAppInbound[]) => ({
    contacts: messages.map(({ from, from_user_id: userId }) => ({
      ...(from === undefined ? {} : { wa_id: from }),
      ...(userId === undefined ? {} : { user_id: userId }),
      profile: { name: names.get(from ?? person) ?? "Ann" },
    })),
    messages,
  });
  const send = (message: WhatsAppInbound): string => {
    deliver(state, [valueOf([message])]);
    return message.id;
  };

  const peer: WhatsAppPeer = {
    url: `http://127.0.0.1:${port}`,
    token,
    appSecret,
    phoneNumberId: number.phoneNumberId,
    displayPhoneNumber: number.displayPhoneNumber,
    async subscribe(url, verifyToken) {
      const challenge = String(1_158_201_444 + state.pending.length);
      const query = new URLSearchParams({
        "hub.mode": "subscribe",
        "hub.challenge": challenge,
        "hub.verify_token": verifyToken,
      });
      const response = await fetch(`${url}?${query.toString()}`);
      const text = await response.text();
      if (response.status !== 200 || text !== challenge) {
        throw new Error(`The callback URL could not be validated: ${response.status} ${text}`);
      }
      peer.webhook(url);
    },
    webhook(url) {
      state.webhook = url;
      state.changed();
    },
    message(type, content, { from = person, name, fields } = {}) {
      const id = state.id();
      state.received.add(id);
      state.windows.set(from, Date.now() + dayMs);
      const timestamp = String(Math.floor(Date.now() / 1_000));
      if (name !== undefined) names.set(from, name);
      return { from, id, timestamp, type, [type]: content, ...fields };
    },
    say: (text, written) => send(peer.message("text", { body: text }, written)),
    sendMedia(type, content, mediaType, fields = {}, written) {
      const id = state.mediaId();
      state.media.set(id, { mediaType, name: null, content, url: null });
      return send(peer.message(type, { id, mime_type: mediaType, sha256: "x", ...fields }, written));
    },
    press(messageId, title, written) {
      const message = state.sent.find((one) => one.id === messageId);
      const button = message?.buttons.find((one) => one.title === title);
      if (message === undefined || button === undefined) throw new Error(`message ${messageId} has no button ${title}`);
      const context = { from: number.displayPhoneNumber, id: messageId };
      const content = { type: "button_reply", button_reply: button };
      return send(peer.message("interactive", content, { ...written, fields: { context, ...written?.fields } }));
    },
    batch(messages, { together = false, phoneNumberId } = {}) {
      const values = together ? [valueOf(messages)] : messages.map((message) => valueOf([message]));
      deliver(state, values, phoneNumberId === undefined ? number : { ...number, phoneNumberId });
    },
    status: (change) => deliverStatus(state, change),
    signed(content) {
      const body = typeof content === "string" ? content : platformJson(content);
      return { body, signature: signatureOf(body, appSecret) };
    },
    endWindow(of, refuses = "response") {
      state.windows.set(of, 0);
      state.refusesLate = refuses;
    },
    openWindow: (of) => void state.windows.set(of, Date.now() + dayMs),
    approveTemplate: (name, language, parameters) => void state.templates.set(`${name}/${language}`, parameters),
    expireMedia() {
      for (const { url } of state.media.values()) if (url !== null) url.expiresAtMs = 0;
    },
    fail: (endpoint, fault) => state.addFault(endpoint, fault),
    sent: state.sent,
    calls: state.calls,
    read: state.read,
    typing: state.typing,
    get duplicates() {
      const keys = state.sent.flatMap(({ callbackData }) => (callbackData === null ? [] : [callbackData]));
      return keys.length - new Set(keys).size;
    },
    deliveries: (id) => state.deliveries.get(id) ?? 0,
    get pending() {
      return state.pending.length;
    },
    untilSent: (count) => state.until(`${count} messages`, () => (state.sent.length >= count ? state.sent : null)),
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
