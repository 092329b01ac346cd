// A strict fake of Slack: one workspace with one app, its Web API, socket mode and Events API and, for the test, the people who write to
// the app and the faults that the service can have. Tests with Bolt, the vendor's own framework, check that it behaves like the service.
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { Deliveries, type Delivery } from "./deliveries.ts";
import { People, type MessageOptions } from "./people.ts";
import { SignedRequests, signatureOf } from "./requests.ts";
import { createApiServer } from "./server.ts";
import { Sockets } from "./sockets.ts";
import { SlackState, type PostRate, type SlackCall, type SlackFault, type SlackMessage } from "./state.ts";
import { closeServer } from "../close-server.ts";

export type { Delivery as SlackDelivery, SlackCall, SlackFault, SlackMessage, MessageOptions as SlackMessageOptions };

export interface SlackPeerOptions {
  /** How long the app may take to acknowledge. Default 3,000 ms, as the service. */
  ackTimeoutMs?: number;
  /** Pauses before the retries of an event. Default 0, 100 and 300 ms; the service waits up to five minutes. */
  retryDelaysMs?: readonly number[];
  /** The rate of messages in one conversation. Default: ten at once, then one per second. */
  postRate?: PostRate;
  /** Events that the app has not subscribed to, such as `app_mention`. */
  withoutEvents?: readonly string[];
}

export interface SlackPeer
  extends
    AsyncDisposable,
    Pick<People, "say" | "sendFile" | "press" | "command" | "edit" | "erase" | "react" | "push"> {
  /** The value for `api_root`. */
  readonly url: string;
  readonly tokens: { readonly bot: string; readonly app: string };
  readonly signingSecret: string;
  readonly bot: { readonly userId: string; readonly botId: string; readonly name: string };
  /** Delivers to this URL from now on, signed; null: over socket mode. */
  setRequestUrl(url: string | null): void;
  /** Verifies a request URL as the settings page of an app does; returns whether the app answered the challenge. */
  verifyUrl(url: string): Promise<boolean>;
  /** The headers of a signed request; `atMs` is the time of the signature. */
  sign(body: string, atMs?: number): Record<string, string>;
  /** Sends an acknowledged delivery again. Resolves with null when it was acknowledged again. */
  repeat(delivery: Delivery): Promise<string | null>;
  /** Tells the sockets to reconnect, or that socket mode was switched off. */
  announce(reason: "warning" | "refresh_requested" | "link_disabled"): void;
  /** Ends the waits for acknowledgements over sockets, as their timeout does. */
  timeOut(): void;
  /** Cuts all sockets. */
  dropSockets(): void;
  /** Sends any text to the sockets. */
  sendRaw(text: string): void;
  /** Sockets that get envelopes now, and all that were ever opened. */
  readonly sockets: { readonly open: number; readonly opened: number };
  /** Queues a fault for the next call of `method` (`*`: any method; `upload` and `download` are the transfers of files). */
  fail(method: string, fault: SlackFault): void;
  /** Makes a conversation answer with an error, such as `channel_not_found` or `is_archived`. */
  closeChannel(channel: string, error: string): void;
  /** Revokes a token. */
  revoke(token: string): void;
  /** Scopes that the bot token does not have, such as `files:write`; a test adds and deletes them. */
  readonly missingScopes: Set<string>;
  name(user: string, name: string): void;
  /** The app's messages that people have seen, in order, including those that were never acknowledged to the sender. */
  readonly sent: readonly SlackMessage[];
  readonly calls: readonly SlackCall[];
  readonly deliveries: readonly Delivery[];
  readonly reactions: ReadonlySet<string>;
  readonly statuses: readonly { channel: string; threadTs: string; status: string }[];
  /** Messages of the app that repeat an earlier one in the same conversation. */
  readonly duplicates: number;
  /** Acknowledgements of unknown envelopes. */
  readonly strayAcknowledgements: number;
  untilSent(count: number): Promise<readonly SlackMessage[]>;
  untilCalls(method: string, count: number): Promise<readonly SlackCall[]>;
  untilConnected(count?: number): Promise<void>;
  until<Value>(what: string, done: () => Value | null): Promise<Value>;
  close(): Promise<void>;
}

export async function startSlackPeer(options: SlackPeerOptions = {}): Promise<SlackPeer> {
  const { ackTimeoutMs = 3_000, retryDelaysMs = [0, 100, 300] } = options;
  const { postRate = { burst: 10, everyMs: 1_000 } } = options;
  const tokens = { bot: "xoxb-100-200-StandInBotTokenForTests", app: "xapp-1-A0STANDIN-300-standinapptokenfortests" };
  const signingSecret = "0123456789abcdef0123456789abcdef";
  const state = new SlackState();
  const sockets = new Sockets(state, ackTimeoutMs);
  const deliveries = new Deliveries(state, { ackTimeoutMs, retryDelaysMs }, sockets);
  const server = createApiServer(state, sockets, tokens, postRate);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const people = new People(state, deliveries, url, new Set(options.withoutEvents));

  const peer: SlackPeer = {
    url,
    tokens,
    signingSecret,
    bot: state.bot,
    say: (text, options) => people.say(text, options),
    sendFile: (content, file, options) => people.sendFile(content, file, options),
    press: (ts, label, from) => people.press(ts, label, from),
    command: (command, text, options) => people.command(command, text, options),
    edit: (ts, text) => people.edit(ts, text),
    erase: (ts) => people.erase(ts),
    react: (channel, ts, reaction, from) => people.react(channel, ts, reaction, from),
    push: (event) => people.push(event),
    setRequestUrl: (target) => {
      deliveries.transport = target === null ? sockets : new SignedRequests(state, target, signingSecret, ackTimeoutMs);
    },
    verifyUrl: async (target) => {
      const challenge = randomUUID();
      const body = JSON.stringify({ token: "unused", challenge, type: "url_verification" });
      const headers = { "content-type": "application/json", ...signatureOf(body, signingSecret) };
      const response = await fetch(target, { method: "POST", headers, body });
      const text = await response.text();
      return response.status === 200 && text.includes(challenge);
    },
    sign: (body, atMs) => signatureOf(body, signingSecret, atMs),
    repeat: (delivery) => deliveries.repeat(delivery),
    announce: (reason) => sockets.announce(reason),
    timeOut: () => sockets.timeOut(),
    dropSockets: () => sockets.drop(),
    sendRaw: (text) => sockets.sendRaw(text),
    sockets,
    fail: (method, fault) => state.addFault(method, fault),
    closeChannel: (channel, error) => void state.closed.set(channel, error),
    revoke: (token) => void state.revoked.add(token),
    missingScopes: state.missingScopes,
    name: (user, name) => void state.names.set(user, name),
    sent: state.sent,
    calls: state.calls,
    deliveries: deliveries.all,
    reactions: state.reactions,
    statuses: state.statuses,
    get duplicates() {
      const keys = state.sent.map(
        ({ channel, threadTs, text, files }) => `${channel} ${threadTs} ${text} ${files[0]?.name}`,
      );
      return keys.length - new Set(keys).size;
    },
    get strayAcknowledgements() {
      return sockets.stray;
    },
    untilSent: (count) =>
      state.until(`${count} messages, ${state.sent.length} so far`, () =>
        state.sent.length >= count ? state.sent : null,
      ),
    untilCalls: (method, count) =>
      state.until(`${count} calls of ${method}`, () => {
        const found = state.calls.filter((call) => call.method === method);
        return found.length >= count ? found : null;
      }),
    untilConnected: async (count = 1) => {
      await state.until(`${count} sockets`, () => (sockets.open >= count ? true : null));
    },
    until: (what, done) => state.until(what, done),
    async close() {
      sockets.close();
      await closeServer(server);
      await deliveries.close();
    },
    [Symbol.asyncDispose]: () => peer.close(),
  };
  return peer;
}
