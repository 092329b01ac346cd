// Chooses the MCP server for speech recognition: the one in the settings, else the only one with the required tools. Pure.
import type { OutputOf, SttTool, voiceServers, VoiceSettings } from "@parley/contracts";

export type RunnerServers = OutputOf<typeof voiceServers>;

/** A server and the tool-runner through which it is called. */
export interface SttServer {
  server: string;
  runner: string;
  /** Whether every tool-runner reaches the same server. */
  shared: boolean;
  has: readonly SttTool[];
}

/** The required tools; the others are optional. */
const needed: readonly SttTool[] = ["start", "updates", "stop"];

/** The server, or a problem with its remedy. */
export function chooseServer(
  runners: readonly RunnerServers[],
  { server: wanted, tools: names }: Pick<VoiceSettings, "server" | "tools">,
): SttServer | { problem: string } {
  const all = runners
    .toSorted((a, b) => (a.runner < b.runner ? -1 : 1))
    .flatMap(({ runner, servers }) => servers.map((each) => ({ ...each, runner })));
  if (runners.length === 0) return { problem: "No tool-runner responded. Try again in a moment." };
  const able = all.filter(({ has }) => needed.every((tool) => has.includes(tool)));
  if (wanted !== undefined) {
    const chosen = able.find(({ server }) => server === wanted);
    if (chosen !== undefined) return chosen;
    const there = all.find(({ server }) => server === wanted);
    if (there === undefined) {
      return {
        problem: `The MCP server "${wanted}" in [voice] server is not configured in [mcp.servers]. Add it there, or name another server.`,
      };
    }
    const missing = needed.filter((tool) => !there.has.includes(tool)).map((tool) => names[tool]);
    return {
      problem: `The MCP server "${wanted}" lacks the tools ${missing.join(", ")}. If they have other names, set those in [voice.tools]; if the server is still starting, try again in a moment.`,
    };
  }
  const choices = [...new Set(able.map(({ server }) => server))].sort();
  if (choices.length > 1) {
    return { problem: `Several MCP servers support voice: ${choices.join(", ")}. Name one in [voice] server.` };
  }
  return able[0] ?? { problem: nobody(names) };
}

function nobody(names: VoiceSettings["tools"]): string {
  const tools = needed.map((tool) => names[tool]).join(", ");
  return `No connected MCP server supports voice: the tools ${tools} are missing. Add a speech-to-text server to parley.toml ([mcp.servers.<name>], see docs/voice.md), or set your server's tool names in [voice.tools].`;
}
