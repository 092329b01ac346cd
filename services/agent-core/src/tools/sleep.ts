// `sleep`: the agent has nothing more to do until something comes in.
import { z } from "zod";
import { localTool } from "./local-tool.ts";

export const sleepTool = localTool({
  name: "sleep",
  aliases: [],
  summary: "End this turn and wait for what comes next.",
  description: "End this turn. Nothing more is said; you wake when a message, a result or a scheduled job comes in.",
  input: z.object({ reason: z.string().optional().describe("For the log.") }),
  examples: [{}, { reason: "waiting for the report" }],
  class: "pure",
  readOnly: false,
  risk: "none",
  effects: [],
  run: () => ({ status: "done", content: "asleep until something comes in", sleeps: true }),
});
