// The trace context in the headers of the bus, and the spans of requests. Requests carry `traceparent` wherever a span is active;
// a span of its own has what takes long or leaves the services that keep house: the store's requests only where that is asked for.
import type { RequestContract } from "@parley/contracts";
import { context, isSpanContextValid, propagation, ROOT_CONTEXT, trace, type Context } from "@opentelemetry/api";
import { headers, type Msg, type MsgHdrs } from "nats";
import { inSpan } from "./spans.ts";

const setter = { set: (carrier: MsgHdrs, key: string, value: string) => carrier.set(key, value) };
const getter = {
  keys: (carrier: MsgHdrs) => carrier.keys(),
  get: (carrier: MsgHdrs, key: string) => (carrier.has(key) ? carrier.get(key) : undefined),
};

function isTraced(active: Context): boolean {
  const span = trace.getSpanContext(active);
  return span !== undefined && isSpanContextValid(span);
}

/** The headers of a message sent here and now; undefined where no span is active. */
export function traceHeaders(): MsgHdrs | undefined {
  const active = context.active();
  if (!isTraced(active)) return undefined;
  const carrier = headers();
  propagation.inject(active, carrier, setter);
  return carrier;
}

/** Does the work under the span that the message was sent in. */
export function underSender<T>(message: Pick<Msg, "headers">, work: () => T): T {
  const { headers: carrier } = message;
  if (carrier === undefined) return work();
  return context.with(propagation.extract(ROOT_CONTEXT, carrier, getter), work);
}

export interface BusSpans {
  /** Requests to the store have spans, too. */
  store: boolean;
}

/** Sends a request in a `send <subject>` span where one is of use: inside of a trace, and not for the store. */
export function inSendSpan<T>(spans: BusSpans, contract: RequestContract, subject: string, work: () => Promise<T>) {
  return inMessageSpan("send", spans, contract, subject, work);
}

/** Handles a request in a `process <subject>` span, by the same rule; to be called under the sender's span. */
export function inProcessSpan<T>(spans: BusSpans, contract: RequestContract, subject: string, work: () => Promise<T>) {
  return inMessageSpan("process", spans, contract, subject, work);
}

function inMessageSpan<T>(
  operation: "send" | "process",
  spans: BusSpans,
  contract: RequestContract,
  subject: string,
  work: () => Promise<T>,
): Promise<T> {
  if (!isTraced(context.active()) || (contract.server === "store" && !spans.store)) return work();
  return inSpan(
    `${operation} ${contract.subject}`,
    { kind: operation === "send" ? "producer" : "consumer", attributes: attributesOf(operation, contract, subject) },
    work,
  );
}

function attributesOf(operation: "send" | "process", contract: RequestContract, subject: string) {
  return {
    "messaging.system": "nats",
    "messaging.operation.name": operation,
    "messaging.operation.type": operation,
    "messaging.destination.name": subject,
    // The namespace stands before the subject of the contract.
    "messaging.destination.template": subject.slice(0, subject.indexOf(".") + 1) + contract.subject,
  };
}
