// Scheduled jobs and the heartbeat as their owner sees them, over the API.
import assert from "node:assert/strict";
import { store, type InputOf, type OutputOf, type Schedule } from "@parley/contracts";
import type { ApiClient } from "@parley/testing";
import { pollUntil } from "@parley/testing/until";
import { z } from "zod";

export const JobAnswer = z.object({ job: store.ScheduleSchema });
const RunAnswer = JobAnswer.extend({ messageId: z.string() });
const Beat = z.object({ outcome: z.string(), inboxId: z.string().nullable() });
type Runs = OutputOf<typeof store.scheduleGet>["runs"];

/** Sends an API request and parses the answer; throws the gateway's error text. */
export async function call<S extends z.ZodType>(
  client: ApiClient,
  path: string,
  schema: S,
  body?: unknown,
): Promise<z.infer<S>> {
  const response = await client.fetch(path, body === undefined ? {} : { method: "POST", body: JSON.stringify(body) });
  assert.ok(response.ok, `${path}: ${response.status} ${response.ok ? "" : await response.text()}`);
  return schema.parse(await response.json());
}

export async function createJob(client: ApiClient, body: Partial<Schedule>): Promise<Schedule> {
  return (await call(client, "/api/schedules", JobAnswer, body)).job;
}

/** Runs the job now; returns the message that starts its turn. */
export async function runJob(client: ApiClient, idOrName: string): Promise<string> {
  return (await call(client, `/api/schedules/${idOrName}/run`, RunAnswer, {})).messageId;
}

/** The finished runs of a job, once there are `count` of them. */
export function finishedRuns(client: ApiClient, id: string, count = 1): Promise<Runs> {
  return pollUntil(async () => {
    const { runs } = await call(client, `/api/schedules/${id}/history`, store.scheduleGet.output.pick({ runs: true }));
    const over = runs.filter((run) => run.turn?.exitReason != null);
    return over.length >= count ? over : undefined;
  }, `${count} finished runs of ${id}`);
}

/** Starts a heartbeat now, regardless of its result. */
export function beat(client: ApiClient): Promise<z.infer<typeof Beat>> {
  return call(client, "/api/heartbeat", Beat, {});
}

/** The message that starts a heartbeat's turn; the owner's session may still be busy with earlier input. */
export function beatThatFires(client: ApiClient): Promise<string> {
  return pollUntil(async () => (await beat(client)).inboxId ?? undefined, "a heartbeat that fires");
}

export async function writeDocument(
  client: ApiClient,
  document: Pick<InputOf<typeof store.documentPut>, "path" | "content">,
): Promise<void> {
  await call(client, "/api/documents/put", z.unknown(), document);
}
