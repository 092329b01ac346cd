// `parley mcp …`: lists MCP servers and their tools, and switches them on and off.

import { Gateway } from "../cluster/gateway.ts";
import { findTarget } from "../cluster/target.ts";
import type { Call, Run } from "../command-line/command.ts";
import { UsageError } from "../errors.ts";
import { exitCodes } from "../exit-codes.ts";
import { painter, print, printJson, type Paint } from "../io.ts";
import { ServerAnswer, serverPath, ServersAnswer, SwitchedAnswer, type Order } from "../mcp/answers.ts";
import { serversTable, switchedText, toolsTable } from "../mcp/text.ts";

export const list: Run = async (call) => {
  const found = await gatewayOf(call).get("/api/mcp", ServersAnswer);
  return shown(call, found, (paint) => serversTable(found.servers, paint));
};

export const tools: Run = async (call) => {
  const found = await gatewayOf(call).get(serverPath(serverOf(call)), ServerAnswer);
  return shown(call, found, (paint) => toolsTable(found.server, found.tools, paint));
};

export const on: Run = (call) => change(call, "on");
export const off: Run = (call) => change(call, "off");
export const restart: Run = (call) => change(call, "restart");

async function change(call: Call, action: Order): Promise<number> {
  const [, tool] = call.positionals;
  const order = { action, ...(tool === undefined ? {} : { tool }) };
  const switched = await gatewayOf(call).post(serverPath(serverOf(call)), order, SwitchedAnswer);
  return shown(call, switched, () => switchedText(action, switched));
}

function gatewayOf({ values, io }: Call): Gateway {
  return new Gateway(findTarget(values, io));
}

function serverOf({ positionals }: Call): string {
  const [server] = positionals;
  if (server === undefined) throw new UsageError("Name a server; `parley mcp list` shows them.");
  return server;
}

function shown({ values, io }: Call, data: unknown, text: (paint: Paint) => string): number {
  if (values.has("json")) printJson(io, data);
  else print(io, text(painter(io.stdout, io.env)));
  return exitCodes.ok;
}
