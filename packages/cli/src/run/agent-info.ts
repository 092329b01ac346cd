// The agent's data for the first message of a stream: model, tools, servers, commands, profiles and skills.

import { join } from "node:path";

import { errorMessage, slashCommands } from "@parley/contracts";
import type { SdkInit } from "@parley/projections";

import { api } from "../cluster/api.ts";
import type { Gateway } from "../cluster/gateway.ts";
import type { Target } from "../cluster/target.ts";
import { type Io, note } from "../io/io.ts";

/** Names of the commands of a chat, without the slash. */
const commandNames: readonly string[] = slashCommands.map(({ name }) => name.slice(1));

/** The folder of the tools' files, if the cluster of this data folder runs on this machine. */
export function workspaceFolder({ home, explicitUrl }: Target): string | null {
  return explicitUrl || home.state === null ? null : (home.state.workspace ?? join(home.path, "workspace"));
}

/** Parts that are not available are empty. Never rejects. `sessionId` empty: there is no session. */
export async function agentInfo(gateway: Gateway, target: Target, sessionId: string, io: Io): Promise<SdkInit> {
  const common = { sessionId, cwd: workspaceFolder(target), slashCommands: commandNames };
  try {
    const [agent, servers, skills] = await Promise.all([
      gateway.run(api.agent, { session: sessionId === "" ? undefined : sessionId }),
      mcpServers(gateway),
      skillNames(gateway),
    ]);
    const { tools, permissionMode, workspace, version, profiles } = agent;
    const about = { tools, permissionMode, workspace, version, agents: profiles, mcpServers: servers, skills };
    return { ...common, ...about, model: agent.model?.model ?? null };
  } catch (error) {
    note(io, `agent information is not available: ${errorMessage(error)}`);
    const unknown = { model: null, tools: [], permissionMode: "default", workspace: null, version: null } as const;
    return { ...common, ...unknown, agents: [], mcpServers: [], skills: [] };
  }
}

/** The states of MCP servers in the SDK's words. */
const serverStates: Readonly<Record<string, string>> = {
  ready: "connected",
  starting: "pending",
  restarting: "pending",
  broken: "failed",
  consent: "needs-auth",
  off: "disabled",
};

/** The SDK's word for the state of an MCP server. */
export function serverStatus(state: string): string {
  return serverStates[state] ?? state;
}

/** The servers and their states; empty when they are not known. */
async function mcpServers(gateway: Gateway): Promise<{ name: string; status: string }[]> {
  const found = await gateway.run(api.servers).catch(() => ({ servers: [] }));
  return found.servers.map(({ server, state }) => ({ name: server, status: serverStatus(state) }));
}

/** The skills that the agent can use: its own and the built-in ones, whose requirements are met. */
async function skillNames(gateway: Gateway): Promise<string[]> {
  const found = await gateway.run(api.skills).catch(() => ({ skills: [] }));
  return found.skills.flatMap(({ name, missing }) => (missing.length === 0 ? [name] : []));
}
