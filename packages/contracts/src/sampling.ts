// Sampling: an MCP server requests a model answer during a call. The call's tool-runner forwards the request, the leader calls the model.
import { z } from "zod";
import { event, request } from "./contract.ts";
import { BlobPart, TextPart } from "./messages.ts";

/** Maximum total characters of all texts of one request, including the server's instructions. */
export const maxSampleCharacters = 60_000;
/** Maximum messages of one request. */
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
  // A retry would cost money again.
  idempotent: false,
  doc: "An MCP server requests a model answer while its call runs: one model call without tools and without the conversation, charged to the call's turn. The leader's settings decide whether it is allowed, the model and the answer length. STALE_EPOCH when the runner's epoch is not current, UNAVAILABLE when a new leader has not resumed the call yet; in both cases no model was called. CANCELLED when the call has ended.",
  input: z.object({
    epoch: z.number().int(),
    /** Id of this request, for `agent.sample.cancel`. */
    id: z.uuid(),
    turnId: z.string(),
    n: z.number().int(),
    /** Its name in the settings. */
    server: z.string(),
    /** The server's instructions to the model; null: none. */
    system: z.string().nullable(),
    /** Roles alternate; the first and the last message are the user's. */
    messages: z.array(SampleMessageSchema).min(1).max(maxSampleMessages),
    /** Maximum tokens that the server requests; the settings may allow fewer. */
    maxTokens: z.number().int().positive(),
    stopSequences: z.array(z.string().regex(/\S/).max(200)).max(4),
  }),
  output: z.discriminatedUnion("status", [
    z.object({
      status: z.literal("answered"),
      text: z.string(),
      /** The provider's name of the model. */
      model: z.string(),
      /** A value of the MCP protocol (`endTurn`, `maxTokens`, `stopSequence`) or the provider's own. */
      stopReason: z.string(),
    }),
    /** For the server and the agent; names the setting that prevents it, if any. */
    z.object({ status: z.literal("refused"), reason: z.string() }),
  ]),
});

export const agentSampleCancel = event({
  subject: "agent.sample.cancel",
  publishers: ["tool-runner"],
  consumers: ["agent-core"],
  doc: "No caller waits for this answer of `agent.sample` any more: abort the model call.",
  payload: z.object({ id: z.uuid() }),
});
