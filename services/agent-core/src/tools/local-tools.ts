// Lists the tools that agent-core runs itself.
import type { ParleySettings } from "@parley/contracts";
import { cronTool } from "./cron.ts";
import type { Memory } from "../memory/memory.ts";
import type { Synthesizer } from "../voice/synthesizer.ts";
import type { LocalTool } from "./local-tool.ts";
import { askUserTool } from "./ask-user.ts";
import { exitPlanModeTool } from "./exit-plan-mode.ts";
import { memoryForgetTool } from "./memory-forget.ts";
import { memoryGetTool } from "./memory-get.ts";
import { memorySearchTool } from "./memory-search.ts";
import { memoryWriteTool } from "./memory-write.ts";
import { messageTool } from "./message.ts";
import {
  agentsListTool,
  sessionsHistoryTool,
  sessionsListTool,
  sessionsSendTool,
  sessionsStatusTool,
  subagentsTool,
} from "./sessions.ts";
import { skillTool, type SkillSource } from "./skill.ts";
import { sleepTool } from "./sleep.ts";
import { speakTool } from "./speak.ts";
import { spawnTool } from "./spawn.ts";
import { todoTool } from "./todo.ts";

export function localTools(
  settings: ParleySettings,
  memory: Pick<Memory, "search">,
  synthesizer: Synthesizer | null,
  skills: SkillSource,
): LocalTool[] {
  return [
    messageTool,
    askUserTool,
    cronTool,
    sleepTool,
    exitPlanModeTool,
    ...(settings.context.built_in_skills ? [skillTool(skills)] : []),
    todoTool,
    sessionsListTool,
    sessionsHistoryTool,
    sessionsStatusTool,
    sessionsSendTool,
    memorySearchTool(memory),
    memoryGetTool,
    memoryWriteTool,
    memoryForgetTool,
    ...(synthesizer === null ? [] : [speakTool(synthesizer)]),
    ...(settings.subagents.enabled ? [spawnTool(settings), subagentsTool, agentsListTool] : []),
  ];
}
