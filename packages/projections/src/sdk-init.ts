// The first message of an SDK-style stream. Pure.
import { ownToolName } from "@parley/contracts";
import { sdkModeOf } from "./sdk-modes.ts";
import type { SdkBody, SdkInit } from "./sdk-types.ts";

export function initBody(init: SdkInit): SdkBody {
  const { model, tools, permissionMode, cwd, workspace, version, mcpServers, slashCommands, agents, skills } = init;
  return {
    type: "system",
    subtype: "init",
    model,
    // As in the calls: the tool of sub-agents has a name of the settings.
    tools: tools.map(ownToolName),
    cwd,
    workspace,
    permissionMode: sdkModeOf(permissionMode),
    version,
    mcp_servers: mcpServers,
    slash_commands: slashCommands,
    agents,
    skills,
    plugins: [],
    output_style: "default",
    apiKeySource: "none",
    claude_code_version: version === null ? "parley" : `parley ${version}`,
  };
}
