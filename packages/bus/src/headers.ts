// Passes the trace context in bus headers and creates the spans of requests. A request contains `traceparent` whenever a span is active.
// Requests to the store are many and short, so they have spans only if the configuration enables them.
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

/** Headers for a message to send now; undefined when no span is active. */
export function traceHeaders(): MsgHdrs | undefined {
  const active = context.active();
  if (!isTraced(active)) return undefined;
  const carrier = headers();
  propagation.inject(active, carrier, setter);
  return carrier;
}

/** Runs work under the span of the message's sender. */
export function continueTrace<T>(message: Pick<Msg, "headers">, work: () => T): T {
  const { headers: carrier } = message;
  if (carrier === undefined) return work();
  return context.with(propagation.extract(ROOT_CONTEXT, carrier, getter), work);
}

export interface BusSpans {
  /** Also create spans for requests to the store. */
  store: boolean;
}

/** Sends a request in a `send <subject>` span if a trace is active, except for the store. */
export function inSendSpan<T>(spans: BusSpans, contract: RequestContract, subject: string, work: () => Promise<T>) {
  return inMessageSpan("send", spans, contract, subject, work);
}

/** Handles a request in a `process <subject>` span under the same conditions. Call it in `continueTrace`. */
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
    // The namespace precedes the contract's subject.
    "messaging.destination.template": subject.slice(0, subject.indexOf(".") + 1) + contract.subject,
  };
}
