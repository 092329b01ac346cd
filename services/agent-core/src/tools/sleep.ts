// `sleep`: ends the turn when the agent has nothing to do until new input arrives.
import { z } from "zod";
import { localTool } from "./local-tool.ts";

export const sleepTool = localTool({
  name: "sleep",
  aliases: [],
  summary: "Wait for new input.",
  description: "End this turn without further output. You resume when a message, a result or a scheduled job arrives.",
  input: z.object({ reason: z.string().optional().describe("For the log.") }),
  examples: [{}, { reason: "waiting for the report" }],
  class: "pure",
  readOnly: false,
  risk: "none",
  effects: [],
  run: () => ({ status: "done", content: "asleep until new input arrives", sleeps: true }),
});
