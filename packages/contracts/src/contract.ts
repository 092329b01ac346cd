// The shape of a registry entry: one subject, its senders, its receivers and its schemas.
import type { z } from "zod";
import type { Role, ServiceName } from "./roles.ts";

/** A request with one reply, served by a queue group named after the service. */
export interface RequestContract<I extends z.ZodType = z.ZodType, O extends z.ZodType = z.ZodType> {
  readonly kind: "request";
  /** Without the namespace; `{name}` is a placeholder for one token. */
  readonly subject: string;
  readonly server: ServiceName;
  /** `group`: one replica replies. `leader`: only the leader subscribes. `all`: every replica replies. */
  readonly served: "group" | "leader" | "all";
  readonly clients: readonly Role[];
  /** The same payload (with the same `opId`, if any) may be sent again after a timeout. */
  readonly idempotent: boolean;
  readonly input: I;
  readonly output: O;
  readonly doc: string;
}

/** Published once to all subscribers; it may be lost. A `hint` only saves time: the data is in the store. */
export interface EventContract<P extends z.ZodType = z.ZodType> {
  readonly kind: "event" | "hint";
  readonly subject: string;
  readonly publishers: readonly Role[];
  readonly consumers: readonly Role[];
  readonly payload: P;
  readonly doc: string;
}

export type Contract = RequestContract | EventContract;
export type InputOf<C extends RequestContract> = z.infer<C["input"]>;
export type OutputOf<C extends RequestContract> = z.infer<C["output"]>;
export type PayloadOf<C extends EventContract> = z.infer<C["payload"]>;

export function request<I extends z.ZodType, O extends z.ZodType>(
  contract: Omit<RequestContract<I, O>, "kind" | "served" | "idempotent"> &
    Partial<Pick<RequestContract<I, O>, "served" | "idempotent">>,
): RequestContract<I, O> {
  return { served: "group", idempotent: true, ...contract, kind: "request" };
}

export function event<P extends z.ZodType>(contract: Omit<EventContract<P>, "kind">): EventContract<P> {
  return { ...contract, kind: "event" };
}

export function hint<P extends z.ZodType>(contract: Omit<EventContract<P>, "kind">): EventContract<P> {
  return { ...contract, kind: "hint" };
}

/** The full subject with namespace and placeholder values. A missing value becomes `*`, for subscriptions. */
export function subjectOf(contract: Contract, namespace: string, params: Record<string, string> = {}): string {
  const filled = contract.subject.replace(/\{(\w+)\}/g, (_, name: string) => subjectToken(params[name] ?? "*"));
  return `${namespace}.${filled}`;
}

/** The placeholder values of a subject that `subjectOf` made. */
export function paramsOf(contract: Contract, namespace: string, subject: string): Record<string, string> {
  const names = placeholdersOf(contract);
  if (names.length === 0) return {};
  const tokens = subject.slice(namespace.length + 1).split(".");
  return Object.fromEntries(names.map(([name, index]) => [name, decodeURIComponent(tokens[index] ?? "")]));
}

/** The placeholders of a contract's subject with the numbers of their tokens. Cached: every message needs them. */
function placeholdersOf(contract: Contract): readonly (readonly [name: string, index: number])[] {
  let known = placeholders.get(contract);
  if (known === undefined) {
    const names = contract.subject.split(".").map((token) => /^\{(\w+)\}$/.exec(token)?.[1]);
    known = names.flatMap((name, index) => (name === undefined ? [] : [[name, index] as const]));
    placeholders.set(contract, known);
  }
  return known;
}

const placeholders = new WeakMap<Contract, readonly (readonly [name: string, index: number])[]>();

/** Encodes any text as one subject token: characters with a meaning in NATS (`.`, `*`, `>`, white space) are percent-encoded. */
function subjectToken(value: string): string {
  if (value === "*") return value;
  return encodeURIComponent(value).replaceAll(".", "%2E").replaceAll("*", "%2A");
}
