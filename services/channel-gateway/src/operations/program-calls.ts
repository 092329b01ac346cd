// Calls of tools that the program which drives a session runs itself.
import { operations, store } from "@parley/contracts";
import { implement } from "./operation.ts";

export const programCallOperations = [
  implement(operations.programCallsTake, ({ turn: turnId, call: callId, by, holdMs }, { deps }) =>
    deps.bus.request(store.programCallTake, { turnId, callId, by, holdMs }),
  ),

  implement(operations.programCallsAnswer, ({ turn: turnId, call: callId, ...answer }, { deps }) =>
    deps.bus.request(store.programCallAnswer, { turnId, callId, ...answer }),
  ),
];
