// Checkpoints and rewinds in the native API.
import { checkpointRewind, store } from "@parley/contracts";
import { nameUuid } from "@parley/kit";
import { z } from "zod";
import { requestRewind } from "../operations/request-rewind.ts";
import { answerOf } from "../operations/session-service.ts";
import type { HttpDeps } from "./deps.ts";
import type { Endpoints } from "./endpoint.ts";
import { keyHeader, operationRef } from "./operation-ref.ts";
import { requireSession, SessionParams } from "./sessions.ts";

/** Files are restored one by one, and a concurrent rewind is waited for. */
const rewindTimeoutMs = 120_000;

export const RewindBody = z.strictObject({
  checkpointId: z.uuid(),
  /** Only report what would happen to each file. */
  dryRun: z.boolean().default(false),
});

export function rewind({ bus }: HttpDeps, sessionId: string, what: z.infer<typeof RewindBody>, ref: string) {
  const order = { opId: nameUuid(`rewind:${ref}`), sessionId, turnId: what.checkpointId, dryRun: what.dryRun };
  return answerOf("tool-runner", requestRewind(bus, order, rewindTimeoutMs));
}

export function checkpointRoutes(endpoints: Endpoints, deps: HttpDeps): void {
  endpoints.add(
    {
      method: "GET",
      url: "/api/sessions/:id/checkpoints",
      summary: "Turns and rewinds of a session that changed files, newest first",
      params: SessionParams,
      query: z.strictObject({ limit: z.coerce.number().int().min(1).max(200).default(50) }),
      answers: { 200: { description: "The checkpoints", schema: store.checkpointList.output } },
    },
    async ({ params, query }) => {
      const { sessionId } = await requireSession(deps, params.id);
      return deps.bus.request(store.checkpointList, { sessionId, limit: query.limit });
    },
  );

  endpoints.add(
    {
      method: "POST",
      url: "/api/sessions/:id/rewind",
      summary: "Restore files to their state before a checkpoint's turn",
      headers: keyHeader,
      params: SessionParams,
      body: RewindBody,
      answers: {
        200: { description: "The outcome for each file", schema: checkpointRewind.output },
        409: { description: "conflict: a turn of the session or of its sub-agents is running" },
      },
    },
    async ({ params, body, request }) => {
      const { sessionId } = await requireSession(deps, params.id);
      return rewind(deps, sessionId, body, operationRef(request));
    },
  );
}
