// What an MCP server asks a model for in the middle of a call: the tool-runner that holds the call passes it on, the leader asks.
import { z } from "zod";
import { event, request } from "./contract.ts";
import { BlobPart, TextPart } from "./messages.ts";

/** Characters of all texts of one request together, the server's instructions included. */
export const maxSampleCharacters = 60_000;
/** Messages of one request. */
export const maxSampleMessages = 100;

const SampleMessageSchema = z.object({
  role: z.enum(["user", "assistant"]),
  parts: z.array(z.discriminatedUnion("type", [TextPart, BlobPart])).min(1),
});
export type SampleMessage = z.infer<typeof SampleMessageSchema>;

export const agentSample = request({
  subject: "agent.sample",
  server: "agent-core",
  served: "leader",
  clients: ["tool-runner"],
  // Asked again it would cost again.
  idempotent: false,
  doc: "An MCP server asks for a model's answer while its call runs: one model call without tools, of which the conversation is no part, counted to the call's turn. Whether it may, which model and how long an answer is the leader's own settings say. STALE_EPOCH when another agent-core leads than the runner knows of, UNAVAILABLE when a new leader has not taken up the call yet: no model was asked then. CANCELLED when the call has ended.",
  input: z.object({
    epoch: z.number().int(),
    /** Of this request; for `agent.sample.cancel`. */
    id: z.uuid(),
    turnId: z.string(),
    n: z.number().int(),
    /** As the settings name it. */
    server: z.string(),
    /** Its instructions to the model; null: none. */
    system: z.string().nullable(),
    /** From user to user, roles alternate. */
    messages: z.array(SampleMessageSchema).min(1).max(maxSampleMessages),
    /** Tokens the server wants at most; the settings may allow fewer. */
    maxTokens: z.number().int().positive(),
    stopSequences: z.array(z.string().regex(/\S/).max(200)).max(4),
  }),
  output: z.discriminatedUnion("status", [
    z.object({
      status: z.literal("answered"),
      text: z.string(),
      /** As its provider spells it. */
      model: z.string(),
      /** In the protocol's words: `endTurn`, `maxTokens`, `stopSequence`, or the provider's own. */
      stopReason: z.string(),
    }),
    /** For the server and the agent; names the setting where one is in the way. */
    z.object({ status: z.literal("refused"), reason: z.string() }),
  ]),
});

export const agentSampleCancel = event({
  subject: "agent.sample.cancel",
  publishers: ["tool-runner"],
  consumers: ["agent-core"],
  doc: "Nobody waits for this answer of `agent.sample` any more: the model call is cut.",
  payload: z.object({ id: z.uuid() }),
});
