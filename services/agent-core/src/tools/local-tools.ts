// The tools that agent-core carries out itself.
import type { ParleySettings } from "@parley/contracts";
import { cronTool } from "./cron.ts";
import type { LocalTool } from "./local-tool.ts";
import { askUserTool } from "./ask-user.ts";
import { messageTool } from "./message.ts";
import { sleepTool } from "./sleep.ts";
import { spawnTool } from "./spawn.ts";

export function localTools(settings: ParleySettings): LocalTool[] {
  return [messageTool, askUserTool, sleepTool, ...(settings.subagents.enabled ? [spawnTool(settings)] : [])];
}
