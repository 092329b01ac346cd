// Schemas of the gateway's responses. Unknown fields are ignored, so that the CLI works with newer gateways.

import { permissionModes, ReplicaReportSchema, SessionSummarySchema, store } from "@parley/contracts";
import { z } from "zod";

export const StatusAnswer = z.object({
  version: z.string(),
  model: z.object({ provider: z.string(), model: z.string(), note: z.string().nullable() }).nullable(),
  replicas: z.array(ReplicaReportSchema),
  /** Deliveries by state, if the gateway counts them. */
  outbox: z.record(z.string(), z.number()).optional(),
  inbox: z.record(z.string(), z.number()).optional(),
});
export type StatusAnswer = z.infer<typeof StatusAnswer>;

export const SessionsAnswer = z.object({ sessions: z.array(SessionSummarySchema) });
export const SessionAnswer = z.object({ session: SessionSummarySchema });
export const MessagesAnswer = store.sessionMessages.output;
export const AgentAnswer = z.object({
  version: z.string(),
  model: z.object({ provider: z.string(), model: z.string() }).nullable(),
  tools: z.array(z.string()),
  permissionMode: z.enum(permissionModes),
  workspace: z.string().nullable(),
});
export const CancelAnswer = store.turnCancel.output;
export const MessageStateAnswer = store.inboxGet.output;
export type MessageState = z.infer<typeof MessageStateAnswer>;
export const SentAnswer = store.outboxPut.output;
export const DeliveryAnswer = store.outboxGet.output;
export type Delivery = z.infer<typeof DeliveryAnswer>;
export const PairingsAnswer = store.pairingList.output;
export const ApprovedAnswer = store.pairingApprove.output;

/** The stored message, or the result of a command such as `/stop`. */
export const KeptAnswer = z.union([
  z.object({ messageId: z.string(), sessionId: z.string(), duplicate: z.boolean() }),
  z.object({ command: z.string(), text: z.string() }),
]);

export const ErrorAnswer = z.object({ error: z.object({ message: z.string(), code: z.string().optional() }) });
