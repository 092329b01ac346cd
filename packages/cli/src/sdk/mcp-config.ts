// The MCP servers of a program, as the flag `--mcp-config` names them.

import { errorMessage } from "@parley/contracts";
import { parseJson } from "@parley/kit";
import { z } from "zod";

import { UsageError } from "../io/io.ts";
import { type ExternalServer, readExternalServer } from "../run/external-servers.ts";
import type { RunOptions } from "../run/options.ts";

const ServerConfig = z.object({
  mcpServers: z.record(z.string(), z.looseObject({ type: z.string().optional() })).default({}),
});

/** The names of servers in the program's process, and the other servers. Throws UsageError for one that cannot be used. */
export function programServers(configs: readonly string[]): Pick<RunOptions, "servers" | "externalServers"> {
  const servers: string[] = [];
  const externalServers: Record<string, ExternalServer> = {};
  for (const config of configs) {
    const parsed = ServerConfig.safeParse(parseJson(config));
    if (!parsed.success) throw new UsageError("--mcp-config: only MCP servers as JSON text can be given.");
    for (const [name, server] of Object.entries(parsed.data.mcpServers)) {
      if (server.type === "sdk") servers.push(name);
      else externalServers[name] = externalServer(name, server);
    }
  }
  return { servers, externalServers };
}

function externalServer(name: string, config: unknown): ExternalServer {
  try {
    return readExternalServer(name, config);
  } catch (error) {
    throw new UsageError(`--mcp-config: ${errorMessage(error)}.`);
  }
}
