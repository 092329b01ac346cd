// The bus as used by the services: typed requests, served subjects, events. Only this package imports the NATS client.
import { setTimeout as delay } from "node:timers/promises";
import {
  paramsOf,
  subjectOf,
  WireError,
  type EventContract,
  type InputOf,
  type OutputOf,
  type PayloadOf,
  type RequestContract,
} from "@parley/contracts";
import { PermissionViolationError, type Msg, type NatsConnection } from "nats";

import { pauseMs, sendUntilReply } from "./attempts.ts";
import { openConnection, type Connection, type ConnectOptions } from "./connect.ts";
import { asWireError, decode, decodeAnswer, encode, encodeAnswer, encodeFailure } from "./envelope.ts";
import { measured, type RequestOutcome } from "./measure.ts";
import { inProcessSpan, inSendSpan, traceHeaders, continueTrace, type BusSpans } from "./headers.ts";
import { ResendDelays } from "./resend-delay.ts";
import type { RequestOptions, Served, SubjectParams } from "./request-options.ts";
import { Sender } from "./sender.ts";
import { Serving, stopping } from "./serving.ts";

export interface BusOptions extends ConnectOptions {
  /** First token of every subject. */
  namespace: string;
  /** Called with the subject of the contract for each payload that does not match it; the payload is dropped or refused, and logged. */
  onBadPayload?: (subject: string) => void;
  /** Called at the end of each request, with its duration. */
  onRequest?: (outcome: RequestOutcome, seconds: number) => void;
  /** Called for each event that was not published because the server was unreachable. */
  onLost?: (kind: "hint" | "live") => void;
  /** Share of hints to drop, 0 to 1, as a fault for tests. Default 0. */
  dropHints?: number;
  /** With tracing: also create a span for each request to the store. Default false. */
  traceStore?: boolean;
}

export class Bus {
  readonly namespace: string;
  readonly #connection: NatsConnection;
  readonly #sender: Sender;
  readonly #link: Connection;
  readonly #options: BusOptions;
  readonly #spans: BusSpans;
  readonly #serving = new Serving();
  readonly #resendDelays = new ResendDelays();
  /** Subjects that the server does not allow this role to subscribe. */
  readonly #denied = new Set<string>();

  constructor(link: Connection, options: BusOptions) {
    this.#link = link;
    this.#connection = link.connection;
    this.#sender = new Sender(link.connection, { sealsReplies: options.role === "tool-runner" });
    this.#options = options;
    this.#spans = { store: options.traceStore ?? false };
    this.namespace = options.namespace;
  }

  /** Resolves when the connection has ended permanently: undefined after `drain`, otherwise the reason. */
  get closed(): Promise<Error | undefined> {
    return this.#connection.closed().then((error) => error ?? undefined);
  }

  /**
   * Sends a request and waits for the reply. Idempotent requests are sent again without a responder or a reply, until `timeoutMs`. Throws
   * WireError: the error of the reply, or UNAVAILABLE, TIMEOUT, CANCELLED, TOO_LARGE.
   */
  async request<C extends RequestContract>(
    contract: C,
    input: InputOf<C>,
    options: RequestOptions = {},
  ): Promise<OutputOf<C>> {
    const subject = subjectOf(contract, this.namespace, options.params);
    const payload = encode(input, subject);
    return measured(this.#options.onRequest, () =>
      inSendSpan(this.#spans, contract, subject, () => this.#ask(contract, subject, payload, options)),
    );
  }

  async #ask<C extends RequestContract>(
    contract: C,
    subject: string,
    payload: Uint8Array,
    options: RequestOptions,
  ): Promise<OutputOf<C>> {
    const headers = traceHeaders();
    return sendUntilReply(subject, {
      ...options,
      idempotent: contract.idempotent,
      resend: this.#resendDelays.of(contract),
      isClosed: () => this.#connection.isClosed(),
      send: (timeoutMs) => this.#sender.request(subject, payload, timeoutMs, headers),
      read: (reply) => decodeAnswer(contract.output, reply, subject) as OutputOf<C>,
    });
  }

  /** Sends a request to every replica and returns the replies that arrive within `waitMs`. */
  async gather<C extends RequestContract>(contract: C, input: InputOf<C>, waitMs: number): Promise<OutputOf<C>[]> {
    const subject = subjectOf(contract, this.namespace);
    const answers: OutputOf<C>[] = [];
    try {
      const replies = await this.#connection.requestMany(subject, encode(input, subject), {
        strategy: "timer",
        maxWait: waitMs,
      });
      for await (const reply of replies) {
        try {
          answers.push(decodeAnswer(contract.output, reply.string(), subject) as OutputOf<C>);
        } catch (error) {
          // A replica that is stopping; the others reply.
          if (!WireError.is(error, "UNAVAILABLE")) throw error;
        }
      }
    } catch (error) {
      const failure = asWireError(error, subject);
      if (failure.code !== "UNAVAILABLE" && failure.code !== "TIMEOUT") throw failure;
    }
    return answers;
  }

  /**
   * Serves a subject. A thrown WireError is sent as reply; any other error is a bug: it is logged and the reply is INTERNAL. `params`
   * restricts the placeholders of the subject; absent ones match every value.
   */
  serve<C extends RequestContract>(
    contract: C,
    handle: (input: InputOf<C>) => Promise<OutputOf<C>>,
    params: SubjectParams = {},
  ): Served {
    const subject = subjectOf(contract, this.namespace, params);
    const group = contract.served === "group" ? { queue: contract.server } : {};
    let closed = false;
    const subscription = this.#connection.subscribe(subject, {
      ...group,
      callback: (error, message) => {
        if (error !== null) return this.#unheard(subject, error);
        if (closed) return this.#sender.respond(message, encodeFailure(stopping(subject)));
        this.#track(continueTrace(message, () => this.#answer(contract, handle, message)));
      },
    });
    return this.#serving.add(subscription, () => (closed = true));
  }

  /** Publishes an event once. It is lost when the connection is down. */
  publish<C extends EventContract>(contract: C, payload: PayloadOf<C>, params: SubjectParams = {}): void {
    if (contract.kind === "hint" && Math.random() < (this.#options.dropHints ?? 0)) return;
    if (!this.connected) this.#options.onLost?.(contract.kind === "hint" ? "hint" : "live");
    if (this.#connection.isClosed() || this.#connection.isDraining()) return;
    const subject = subjectOf(contract, this.namespace, params);
    // Work that a hint triggers belongs to the sender's trace; live events trigger no work.
    const headers = contract.kind === "hint" ? traceHeaders() : undefined;
    this.#sender.publish(subject, encode(payload, subject), headers);
  }

  /** Subscribes to an event. Absent `params` match every value; the handler receives the actual ones. The handler must not throw. */
  subscribe<C extends EventContract>(
    contract: C,
    params: SubjectParams,
    handle: (payload: PayloadOf<C>, params: SubjectParams) => void,
  ): Served {
    const subject = subjectOf(contract, this.namespace, params);
    const subscription = this.#connection.subscribe(subject, {
      callback: (error, message) => {
        if (error !== null) return this.#unheard(subject, error);
        try {
          const payload = decode(contract.payload, message.string(), message.subject) as PayloadOf<C>;
          continueTrace(message, () => handle(payload, paramsOf(contract, this.namespace, message.subject)));
        } catch (failure) {
          this.#refused(contract, message.subject, failure);
        }
      },
    });
    return { close: () => subscription.unsubscribe() };
  }

  /** Resolves when the server has processed everything published and subscribed so far. */
  async flush(): Promise<void> {
    this.#sender.flush();
    await this.#connection.flush();
  }

  /**
   * Resolves when the server allows all subscriptions of this role so far; waits while the server cannot be reached. Throws otherwise: the
   * server's permissions are then of another version, and requests to this role would get no reply.
   */
  async verifyPermissions(): Promise<void> {
    for (let tries = 1; ; tries++) {
      try {
        await this.flush();
        break;
      } catch (error) {
        // The connection broke meanwhile; the client connects again and repeats the subscriptions.
        if (this.#connection.isClosed()) throw error;
        await delay(pauseMs(tries));
      }
    }
    const [first, ...others] = this.#denied;
    if (first === undefined) return;
    const more = others.length === 0 ? "" : ` and ${others.length} more`;
    throw new Error(
      `NATS denies ${this.#options.role} the subscription to ${first}${more}: its permissions are of another version. Install this version's nats.conf and restart NATS`,
    );
  }

  /** Whether the server can be reached right now. */
  get connected(): boolean {
    return this.#link.connected;
  }

  /** Why nothing can be sent or received right now, in one sentence; null: the server can be reached. */
  get problem(): string | null {
    return this.connected ? null : "waiting for the bus: the connection to NATS is lost";
  }

  /** Counts the connections to a server from 1: it grows with each reconnect. */
  get connectionCount(): number {
    return this.#link.count;
  }

  /** Whether TLS protects the connection to the server. */
  get encrypted(): boolean {
    return this.#link.encrypted;
  }

  /** Waits for running handlers, stops taking requests, sends pending messages, closes. */
  async drain(): Promise<void> {
    await this.#serving.end();
    this.#sender.flush();
    if (this.#connection.isClosed()) return;
    // Without a server, draining would wait for a reconnect.
    await (this.connected ? this.#connection.drain() : this.#connection.close());
  }

  async #answer<C extends RequestContract>(
    contract: C,
    handle: (input: InputOf<C>) => Promise<OutputOf<C>>,
    message: Msg,
  ): Promise<void> {
    try {
      const input = decode(contract.input, message.string(), message.subject) as InputOf<C>;
      const answer = await inProcessSpan(this.#spans, contract, message.subject, () => handle(input));
      this.#sender.respond(message, encodeAnswer(answer, message.subject));
    } catch (error) {
      this.#sender.respond(message, encodeFailure(this.#refused(contract, message.subject, error)));
    }
  }

  /** Logs and counts an error and returns the error to reply with. */
  #refused(contract: { subject: string }, subject: string, error: unknown): WireError {
    if (!WireError.is(error)) {
      this.#options.log.error({ err: error, subject }, "handler failed");
      return new WireError("INTERNAL", `${subject}: internal error`);
    }
    if (error.code === "INVALID_INPUT") {
      this.#options.onBadPayload?.(contract.subject);
      this.#options.log.warn({ subject, reason: error.message }, "payload refused");
    }
    return error;
  }

  #unheard(subject: string, error: Error): void {
    if (error instanceof PermissionViolationError) this.#denied.add(subject);
    this.#options.log.error({ err: error, subject }, "subscription failed");
  }

  #track(work: Promise<void>): void {
    this.#serving.track(work.catch((error: unknown) => this.#options.log.error({ err: error }, "reply not sent")));
  }
}

/** Opens the bus. Waits while no server is available; throws when the login is refused. */
export async function connectBus(options: BusOptions): Promise<Bus> {
  return new Bus(await openConnection(options), options);
}
