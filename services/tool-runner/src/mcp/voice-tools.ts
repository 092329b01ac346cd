// Serves the speech-to-text tools of MCP servers to agent-core, outside of turns: lists the servers that have them, and calls one.
// Results are untrusted; the caller validates them.
import type { Bus, Served } from "@parley/bus";
import { sttTools, voiceCall, voiceServers, WireError, type VoiceSettings } from "@parley/contracts";
import { parseJson } from "@parley/kit";
import type { CallToolResult } from "@modelcontextprotocol/client";
import type { EpochGate } from "../calls/epoch.ts";
import type { McpServer } from "./server.ts";
import type { McpServers } from "./servers.ts";

export interface VoiceToolsDeps {
  bus: Bus;
  /** This replica. */
  runner: string;
  servers: McpServers;
  settings: VoiceSettings;
  epochs: EpochGate;
}

export function serveVoiceTools({ bus, runner, servers, settings, epochs }: VoiceToolsDeps): Served[] {
  const names = settings.tools;
  return [
    bus.serve(voiceServers, async () => ({
      runner,
      servers: servers.all.map((server) => ({
        server: server.plan.name,
        shared: server.plan.reach.kind === "http",
        has: sttTools.filter((tool) => server.tools.some(({ name }) => name === names[tool])),
      })),
    })),
    bus.serve(
      voiceCall,
      async ({ epoch, server: name, tool, arguments: args, timeoutMs }) => {
        epochs.admit(epoch);
        const server = servers.server(name);
        if (server === undefined) throw new WireError("NOT_FOUND", `unknown MCP server "${name}" on this tool-runner`);
        return call(server, names[tool], args, timeoutMs);
      },
      { replica: runner },
    ),
  ];
}

type Answer = { outcome: "answered"; value: Record<string, unknown> } | { outcome: "failed"; problem: string };

async function call(
  server: McpServer,
  name: string,
  args: Record<string, unknown>,
  timeoutMs: number,
): Promise<Answer> {
  const late = AbortSignal.timeout(timeoutMs);
  let answer: Answer | undefined;
  const { content } = await server.use(async (client) => {
    const result = await client.callTool({ name, arguments: args }, { signal: late, timeout: timeoutMs });
    answer = answerOf(result);
    return { content: "", isError: false };
  }, late);
  if (answer !== undefined) return answer;
  if (!late.aborted) return { outcome: "failed", problem: content };
  return { outcome: "failed", problem: `${name} did not respond within ${timeoutMs / 1_000} s` };
}

/** The JSON object in a result: from a text block, otherwise the structured content. Pure. */
export function answerOf(result: CallToolResult): Answer {
  const texts = result.content.flatMap((block) => (block.type === "text" ? [block.text] : []));
  if (result.isError === true) return { outcome: "failed", problem: texts.join("\n").slice(0, 1_000) || "it failed" };
  const found = [...texts.map(objectIn), result.structuredContent].find(isObject);
  return found === undefined
    ? { outcome: "failed", problem: "the server's response contains no JSON object" }
    : { outcome: "answered", value: found };
}

/** Tolerates text around the JSON, such as a code fence. */
function objectIn(text: string): unknown {
  const [start, end] = [text.indexOf("{"), text.lastIndexOf("}")];
  return start === -1 || end < start ? undefined : parseJson(text.slice(start, end + 1));
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
