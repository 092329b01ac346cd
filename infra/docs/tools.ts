// Collects the tools for docs/tools.md. This folder belongs to no service, so it may import from each.
import { describedTools as agentTools } from "../../services/agent-core/src/docs/described-tools.ts";
import { describedTools as runnerTools } from "../../services/tool-runner/src/docs/described-tools.ts";
import type { Part } from "./tools-document.ts";

/** The parts of docs/tools.md in order. */
export function toolParts(): Part[] {
  return [
    {
      title: "Files, commands and the web",
      about:
        "These tools use the workspace and the network. The tool-runner runs them: `services/tool-runner/src/tools`.",
      tools: runnerTools(),
    },
    {
      title: "People, memory, time and other agents",
      about:
        "These tools use no file, process or network. agent-core runs them: `services/agent-core/src/tools`. `speak` requires `[voice.speech]`; `tool_search` and `tool_call` exist when there are more tools than `tools.search_above`.",
      tools: agentTools(),
    },
  ];
}
