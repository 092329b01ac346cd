// Whose tools docs/tools.md shows: this folder belongs to no service, and so may look into each of them.
import { describedTools as agentTools } from "../../services/agent-core/src/docs/described-tools.ts";
import { describedTools as runnerTools } from "../../services/tool-runner/src/docs/described-tools.ts";
import type { Part } from "./tools-document.ts";

/** The parts of docs/tools.md, in their order. */
export function toolParts(): Part[] {
  return [
    {
      title: "Files, commands and the web",
      about:
        "They work in the workspace and on the network, and are carried out by the tool-runner: `services/tool-runner/src/tools`.",
      tools: runnerTools(),
    },
    {
      title: "People, memory, time and other agents",
      about:
        "They touch no file, process or network, and are carried out by agent-core: `services/agent-core/src/tools`. `speak` is there where `[voice.speech]` is set, and `tool_search` and `tool_call` where there are more tools than `tools.search_above`.",
      tools: agentTools(),
    },
  ];
}
