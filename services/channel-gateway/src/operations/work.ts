// The work of the whole cluster, and another attempt at a dead letter.
import { operations, store } from "@parley/contracts";
import { implement } from "./operation.ts";

export const workOperations = [
  implement(operations.workGet, (_input, { deps }) => deps.bus.request(store.workReport, {})),

  implement(operations.deadLettersRetry, ({ id }, { deps }) => deps.bus.request(store.inboxRetry, { inboxId: id })),
];
