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
  doc: "Which model answers.",
  input: z.object({}),
  output: z.object({ provider: z.string(), model: z.string(), note: z.string().nullable() }),
});
