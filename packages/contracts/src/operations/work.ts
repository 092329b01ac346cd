// Operations on the work of the whole cluster: what waits, takeovers, and dead letters.
import { z } from "zod";
import { inboxRetry, workReport } from "../store/work.ts";
import { operation } from "./operation.ts";

export const workGet = operation({
  name: "work.get",
  summary: "What waits in the cluster and since when, takeovers, and dead letters",
  role: "owner",
  input: z.strictObject({}),
  output: workReport.output,
  http: { method: "GET", path: "/api/work", answers: { 200: "The newest 50 takeovers and dead letters" } },
});

export const deadLettersRetry = operation({
  name: "deadLetters.retry",
  summary: "Queue the message of a dead letter again",
  role: "owner",
  audit: ["id"],
  input: z.strictObject({ id: z.uuid() }),
  output: inboxRetry.output,
  http: {
    method: "POST",
    path: "/api/dead-letters/:id/retry",
    emptyBody: true,
    answers: {
      200: "The queued message. A repeated request returns the same one",
      404: "not_found: it is not a dead letter",
    },
  },
});
