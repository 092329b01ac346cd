// Requests to the agent-core leader.
import { z } from "zod";
import { request } from "./contract.ts";

export const controlPing = request({
  subject: "agent.control.ping",
  server: "agent-core",
  served: "leader",
  clients: ["agent-core", "channel-gateway"],
  doc: "Check whether a leader responds. Standbys send it every 100 ms.",
  input: z.object({}),
  output: z.object({ epoch: z.number().int(), holder: z.string() }),
});

export const controlCancel = request({
  subject: "agent.control.cancel",
  server: "agent-core",
  served: "leader",
  clients: ["channel-gateway"],
  doc: "Stop a session's running turn immediately: abort the model stream and kill its tools. The caller sends `store.turn.cancel` first.",
  input: z.object({ sessionId: z.string(), turnId: z.string().optional() }),
  output: z.object({ cancelled: z.boolean() }),
});

export const controlModels = request({
  subject: "agent.control.models",
  server: "agent-core",
  served: "leader",
  clients: ["channel-gateway"],
  doc: "Get the current model, or the model `name`, and its tools. INVALID_INPUT when the model cannot be used; the message names what is missing.",
  input: z.object({
    name: z.string().min(1).max(200).optional(),
    /** Whether to return `summaries`. */
    summaries: z.boolean().optional(),
  }),
  output: z.object({
    provider: z.string(),
    model: z.string(),
    note: z.string().nullable(),
    /** Names of the main agent's tools, sorted. Without the tools of tool-runners until one of them has responded. */
    tools: z.array(z.string()),
    /** One line on each tool, by its name. */
    summaries: z.record(z.string(), z.string()).optional(),
  }),
});

/** A model for people: `claude-x (anthropic)`, or the name alone where the provider has the same. */
export function modelTitle({ provider, model }: { provider: string; model: string }): string {
  return provider === model ? model : `${model} (${provider})`;
}

export const controlStreaming = request({
  subject: "agent.control.streaming",
  server: "agent-core",
  served: "leader",
  clients: ["channel-gateway"],
  doc: "Get what the session's running model call has written so far, for clients that join in the middle of it.",
  input: z.object({ sessionId: z.string() }),
  output: z.object({
    /** Null: no model call is writing. */
    call: z
      .object({
        turnId: z.string(),
        step: z.number().int(),
        attempt: z.number().int(),
        text: z.string(),
        reasoning: z.string(),
        /** The tool calls that it has begun; `input`: JSON text, which may be cut off. */
        tools: z.array(z.object({ callId: z.string(), tool: z.string(), input: z.string() })),
      })
      .nullable(),
  }),
});

export const controlModelRequest = request({
  subject: "agent.control.model_request",
  server: "agent-core",
  served: "leader",
  clients: ["channel-gateway"],
  doc: "Build the request of a committed model call again, from the log and what is recorded of the call, and return a part of its JSON text. NOT_FOUND when the turn has no such model call.",
  input: z.object({
    turnId: z.uuid(),
    /** Number of the step within its turn. */
    step: z.number().int().positive(),
    /** Characters (UTF-16) of the text that the caller has. */
    offset: z.number().int().nonnegative(),
  }),
  output: z.object({
    /** The model that answered. */
    model: z.string(),
    /** Whether the request is the one that was sent, by its recorded digest. */
    exact: z.boolean(),
    /** Why it is not exact or not there; null: it is exact. */
    note: z.string().nullable(),
    /** JSON text from `offset` on; null: the request cannot be built. */
    text: z.string().nullable(),
    /** Characters of the whole text. */
    length: z.number().int(),
  }),
});

export const controlCompact = request({
  subject: "agent.control.compact",
  server: "agent-core",
  served: "leader",
  clients: ["channel-gateway"],
  // A retry would compact the compacted view again.
  idempotent: false,
  doc: "Compact a session's conversation at a person's request. While a turn runs, the compaction waits for its end (`busy_later`); a leader change drops it. NOT_FOUND when there is no such session.",
  input: z.object({
    sessionId: z.string(),
    /** What the summary must keep. */
    instructions: z.string().min(1).max(4_000).optional(),
  }),
  output: z.discriminatedUnion("outcome", [
    z.object({
      outcome: z.literal("compacted"),
      /** Estimated prompt tokens. */
      tokensBefore: z.number().int(),
      tokensAfter: z.number().int(),
      /** A notice for the person, e.g. that the summary could not be generated. */
      notice: z.string().nullable(),
    }),
    /** There is nothing to compact. */
    z.object({ outcome: z.literal("nothing") }),
    z.object({ outcome: z.literal("busy_later") }),
  ]),
});

export const controlSessionEnded = request({
  subject: "agent.control.session_ended",
  server: "agent-core",
  served: "leader",
  clients: ["channel-gateway"],
  // A retry would run the hooks twice.
  idempotent: false,
  doc: "A conversation has left a session: run the SessionEnd hooks.",
  input: z.object({ sessionId: z.string(), reason: z.enum(["clear", "archived", "switched", "other"]) }),
  output: z.object({}),
});

export const controlHeartbeat = request({
  subject: "agent.control.heartbeat",
  server: "agent-core",
  served: "leader",
  clients: ["channel-gateway"],
  doc: "Start one heartbeat now, also outside the active hours. A repeated `opId` is the same heartbeat.",
  input: z.object({ opId: z.uuid() }),
  output: z.object({
    /** `empty`: HEARTBEAT.md has no tasks. `busy`: a turn already runs in the owner's thread. */
    outcome: z.enum(["fired", "empty", "busy"]),
    inboxId: z.string().nullable(),
  }),
});
