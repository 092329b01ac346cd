// What the handlers of store requests receive, and the type of their tables: one handler a contract.
import type { Bus } from "@parley/bus";
import type { Grant, InputOf, MemorySettings, OutputOf, RequestContract, store } from "@parley/contracts";
import type { FairSemaphore } from "@parley/kit";
import type { BlobRules } from "../blobs/put.ts";
import type { Database } from "../db/database.ts";
import type { Grants } from "../grants.ts";
import type { LeaderCapacity } from "./coordination/leader-capacity.ts";

export interface StoreContext {
  readonly database: Database;
  readonly bus: Bus;
  readonly grants: Grants;
  readonly leaderCapacity: LeaderCapacity;
  readonly blobRules: BlobRules;
  /** Of requests that transfer or store content: they leave most connections to the others, which must not wait for content. */
  readonly transferPermits: FairSemaphore;
  readonly memorySettings: MemorySettings;
  /** Call after a document changed: memory documents are indexed in the background. Searches do not depend on it; they update the index. */
  readonly documentsChanged: () => void;
}

type Exports = typeof store;
type Requests = { [K in keyof Exports as Exports[K] extends RequestContract ? K : never]: Exports[K] };

/** A handler of each request that the store serves. */
export type Handlers = {
  readonly [K in keyof Requests]: Requests[K] extends infer C extends RequestContract
    ? (context: StoreContext, input: InputOf<C>) => Promise<OutputOf<C>>
    : never;
};

/** The handler of a request for one call: it takes session, author and audience only from the checked grant. */
export function withGrant<I extends { grant: string }, O>(
  handle: (context: StoreContext, grant: Grant, input: I) => Promise<O>,
): (context: StoreContext, input: I) => Promise<O> {
  return async (context, input) => handle(context, await context.grants.check(input.grant), input);
}
