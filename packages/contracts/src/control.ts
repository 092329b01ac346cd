// What the leading agent-core can be asked while it works.
import { z } from "zod";
import { request } from "./contract.ts";

export const controlPing = request({
  subject: "agent.control.ping",
  server: "agent-core",
  served: "leader",
  clients: ["agent-core", "channel-gateway"],
  doc: "Is there a leader? Standbys ask every 250 ms.",
  input: z.object({}),
  output: z.object({ epoch: z.number().int(), holder: z.string() }),
});

export const controlCancel = request({
  subject: "agent.control.cancel",
  server: "agent-core",
  served: "leader",
  clients: ["channel-gateway"],
  doc: "Stop a session's running turn at once: abort the model's stream, kill its tools. The store was told first (`store.turn.cancel`).",
  input: z.object({ sessionId: z.string(), turnId: z.string().optional() }),
  output: z.object({ cancelled: z.boolean() }),
});

export const controlModels = request({
  subject: "agent.control.models",
  server: "agent-core",
  served: "leader",
  clients: ["channel-gateway"],
  doc: "Which model answers, with which tools; with `name` that model. INVALID_INPUT when it cannot be asked; the message says what is missing.",
  input: z.object({ name: z.string().min(1).max(200).optional() }),
  output: z.object({
    provider: z.string(),
    model: z.string(),
    note: z.string().nullable(),
    /** Names of what the agent itself has, sorted; without those of the tool-runners while none of them has answered. */
    tools: z.array(z.string()),
  }),
});

export const controlCompact = request({
  subject: "agent.control.compact",
  server: "agent-core",
  served: "leader",
  clients: ["channel-gateway"],
  // Asked again it would compact what was compacted.
  idempotent: false,
  doc: "Compact a session's conversation because a person wants it. While a turn runs it is done at the turn's end (`busy_later`), as far as this leader gets to it. NOT_FOUND when there is no such session.",
  input: z.object({
    sessionId: z.string(),
    /** What the summary shall keep. */
    instructions: z.string().min(1).max(4_000).optional(),
  }),
  output: z.discriminatedUnion("outcome", [
    z.object({
      outcome: z.literal("compacted"),
      /** Prompt tokens, estimated. */
      tokensBefore: z.number().int(),
      tokensAfter: z.number().int(),
      /** What a person should know, e.g. that the summary could not be written. */
      notice: z.string().nullable(),
    }),
    /** There is nothing to make smaller. */
    z.object({ outcome: z.literal("nothing") }),
    z.object({ outcome: z.literal("busy_later") }),
  ]),
});

export const controlSessionEnded = request({
  subject: "agent.control.session_ended",
  server: "agent-core",
  served: "leader",
  clients: ["channel-gateway"],
  // The hooks would hear of it twice.
  idempotent: false,
  doc: "A conversation has left a session: the hooks of SessionEnd are told.",
  input: z.object({ sessionId: z.string(), reason: z.enum(["clear", "archived", "switched", "other"]) }),
  output: z.object({}),
});

export const controlHeartbeat = request({
  subject: "agent.control.heartbeat",
  server: "agent-core",
  served: "leader",
  clients: ["channel-gateway"],
  doc: "One heartbeat now, whatever the hour. `opId` asked for again is the same heartbeat.",
  input: z.object({ opId: z.uuid() }),
  output: z.object({
    /** `empty`: HEARTBEAT.md asks for nothing. `busy`: the owner's thread is at work already. */
    outcome: z.enum(["fired", "empty", "busy"]),
    inboxId: z.string().nullable(),
  }),
});
