// Operator routes: send a text, read deliveries, approve pairings, and show the status of all replicas.
import { controlModels, healthReports, ReplicaReportSchema, store, type ReplicaReport } from "@parley/contracts";
import { z } from "zod";
import { pairingCodeHash } from "../ingress/pairing-code.ts";
import { version } from "../version.ts";
import { requireAccount } from "./require-account.ts";
import type { HttpDeps } from "./deps.ts";
import type { Endpoints } from "./endpoint.ts";
import { operationId } from "./operation-ref.ts";

/** How long replicas have to report their status. */
const gatherMs = 250;
const modelTimeoutMs = 500;
const defaultExpiresInMs = 60 * 60 * 1_000;

export function deliveryRoutes(endpoints: Endpoints, deps: HttpDeps): void {
  const { bus } = deps;
  endpoints.add(
    {
      method: "POST",
      url: "/api/send",
      summary: "Send a text to a conversation of a channel",
      headers: { "Idempotency-Key": "A repeated key is the same text." },
      body: z.strictObject({
        channel: z.string().min(1),
        account: z.string().min(1).default("default"),
        conversation: z.string().min(1).max(512),
        text: z.string().min(1),
        /** The text is dropped when it could not be sent within this time. */
        expiresInMs: z.number().int().min(1_000).max(86_400_000).default(defaultExpiresInMs),
      }),
      answers: {
        202: {
          description: "Stored durably; texts of a conversation are sent in order",
          schema: store.outboxPut.output,
        },
      },
    },
    async ({ body, request, reply }) => {
      const { channel, account, conversation, text, expiresInMs } = body;
      requireAccount(deps, { channel, account });
      const sent = await bus.request(store.outboxPut, {
        opId: operationId(request, "send"),
        outgoing: { address: { channel, account, conversation }, text, expiresInMs },
      });
      reply.code(202);
      return sent;
    },
  );

  endpoints.add(
    {
      method: "GET",
      url: "/api/outbox/:id",
      summary: "The delivery state of one text",
      params: z.object({ id: z.string().regex(/^[0-9]{1,18}$/, "is not a valid delivery id") }),
      answers: { 200: { description: "Its state", schema: store.outboxGet.output } },
    },
    ({ params }) => bus.request(store.outboxGet, { outboxId: params.id }),
  );

  endpoints.add(
    {
      method: "GET",
      url: "/api/pairings",
      summary: "People who requested access",
      answers: { 200: { description: "Open requests", schema: store.pairingList.output } },
    },
    () => bus.request(store.pairingList, {}),
  );

  endpoints.add(
    {
      method: "POST",
      url: "/api/pairings/approve",
      summary: "Admit the person who received this code",
      body: z.strictObject({
        code: z.string().min(4).max(64),
        role: z.enum(["owner", "user", "guest"]).default("user"),
      }),
      answers: { 200: { description: "The admitted contact", schema: store.pairingApprove.output } },
    },
    ({ body }) => bus.request(store.pairingApprove, { codeSha256: pairingCodeHash(body.code), role: body.role }),
  );

  endpoints.add(
    {
      method: "GET",
      url: "/api/status",
      summary: "The status of every replica, and the model",
      answers: {
        200: {
          description: "The replicas that responded",
          schema: z.object({
            version: z.string(),
            model: controlModels.output.nullable(),
            replicas: z.array(ReplicaReportSchema),
          }),
        },
      },
    },
    async () => {
      const [model, ...reports] = await Promise.all([
        bus.request(controlModels, {}, { timeoutMs: modelTimeoutMs }).catch(() => null),
        ...Object.values(healthReports).map((report) => bus.gather(report, {}, gatherMs)),
      ]);
      return { version, model, replicas: reports.flat().toSorted(byServiceAndName) };
    },
  );
}

function byServiceAndName(a: ReplicaReport, b: ReplicaReport): number {
  return a.service.localeCompare(b.service) || a.replica.localeCompare(b.replica);
}
