// The questions of the agent that wait for a person.
import { operations, store } from "@parley/contracts";
import { implement } from "./operation.ts";

export const questionOperations = [
  implement(operations.questionsList, ({ limit }, { deps }) => deps.bus.request(store.questionList, { limit })),
];
