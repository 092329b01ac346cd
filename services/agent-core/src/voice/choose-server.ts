// Which MCP server listens: the one the settings name, else the only one that has the tools. Pure.
import type { OutputOf, SttTool, voiceServers, VoiceSettings } from "@parley/contracts";

export type RunnerServers = OutputOf<typeof voiceServers>;

/** A server and the tool-runner it is asked through. */
export interface SttServer {
  server: string;
  runner: string;
  /** Any tool-runner reaches the very same server. */
  shared: boolean;
  has: readonly SttTool[];
}

/** Without these nothing can be heard; a server may do without the others. */
const needed: readonly SttTool[] = ["start", "updates", "stop"];

/** The server, or why there is none and what to do about it. */
export function chooseServer(
  runners: readonly RunnerServers[],
  { server: wanted, tools: names }: Pick<VoiceSettings, "server" | "tools">,
): SttServer | { problem: string } {
  const all = runners
    .toSorted((a, b) => (a.runner < b.runner ? -1 : 1))
    .flatMap(({ runner, servers }) => servers.map((each) => ({ ...each, runner })));
  if (runners.length === 0) return { problem: "No tool-runner answers right now. Try again in a moment." };
  const able = all.filter(({ has }) => needed.every((tool) => has.includes(tool)));
  if (wanted !== undefined) {
    const chosen = able.find(({ server }) => server === wanted);
    if (chosen !== undefined) return chosen;
    const there = all.find(({ server }) => server === wanted);
    if (there === undefined) {
      return {
        problem: `Voice needs the MCP server "${wanted}" ([voice] server), and it is not among [mcp.servers]. Add it there, or name another one.`,
      };
    }
    const missing = needed.filter((tool) => !there.has.includes(tool)).map((tool) => names[tool]);
    return {
      problem: `The MCP server "${wanted}" has no ${missing.join(", ")}. If it calls them otherwise, say so in [voice.tools]; if it is still starting, try again in a moment.`,
    };
  }
  const choices = [...new Set(able.map(({ server }) => server))].sort();
  if (choices.length > 1) {
    return { problem: `Several MCP servers can listen: ${choices.join(", ")}. Name one in [voice] server.` };
  }
  return able[0] ?? { problem: nobody(names) };
}

function nobody(names: VoiceSettings["tools"]): string {
  const tools = needed.map((tool) => names[tool]).join(", ");
  return `No connected MCP server can listen: the tools ${tools} are missing. Add a speech-to-text server to parley.toml ([mcp.servers.<name>], see docs/voice.md), or say in [voice.tools] what yours calls them.`;
}
