// Executes control requests of a program during a run, or refuses them with a reason.

import { efforts, errorMessage, type SessionSummary } from "@parley/contracts";
import { z } from "zod";

import type { Conversation } from "../chat/conversation.ts";
import type { Gateway } from "../cluster/gateway.ts";
import { api } from "../cluster/api.ts";
import { firstIssue } from "../io/io.ts";
import type { ControlRequest } from "./input.ts";
import { permissionModeNames, readPermissionMode } from "./options.ts";

export interface ControlDeps {
  readonly conversation: Pick<Conversation, "say" | "cancel" | "isBusy">;
  /** The current state of this run's session; null while there is none. */
  session(): Promise<SessionSummary | null>;
  readonly gateway: Pick<Gateway, "run">;
}

export type ControlAnswer =
  | { subtype: "success"; request_id: string; response: Readonly<Record<string, unknown>> }
  | { subtype: "error"; request_id: string; error: string };

/** Thrown with the reason. */
class NotDone extends Error {
  override readonly name = "NotDone";
}

const subtypes = [
  "initialize",
  "interrupt",
  "set_model",
  "set_permission_mode",
  "set_effort",
  "compact",
  "rewind_files",
  "mcp_status",
  "mcp_toggle",
  "mcp_reconnect",
] as const;

/** Requests of the SDK that Parley does not support, with the reason. */
const refusals: Readonly<Record<string, string>> = {
  set_max_thinking_tokens: "reasoning is controlled by effort: use set_effort with one of " + efforts.join(", "),
  can_use_tool: "only Parley sends this request; answer it with a control_response",
  mcp_set_servers: "add MCP servers in parley.toml, [mcp.servers.<name>], and switch them with mcp_toggle",
  mcp_message: "only the cluster communicates with MCP servers",
  hook_callback: "hooks are configured in parley.toml and run in the cluster",
};

export async function carryOut(deps: ControlDeps, id: string, request: ControlRequest): Promise<ControlAnswer> {
  try {
    return { subtype: "success", request_id: id, response: await done(deps, request) };
  } catch (error) {
    return { subtype: "error", request_id: id, error: errorMessage(error) };
  }
}

async function done(deps: ControlDeps, request: ControlRequest): Promise<Readonly<Record<string, unknown>>> {
  const { conversation } = deps;
  switch (request.subtype) {
    case "initialize":
      return { subtypes };
    case "interrupt": {
      const running = conversation.isBusy;
      conversation.cancel();
      return { interrupted: running };
    }
    case "set_model": {
      const { model } = read(z.object({ model: z.string().regex(/^\S+$/).nullable() }), request);
      await command(deps, `/model ${model ?? "default"}`, ({ overrides }) => (overrides.model ?? null) === model);
      return { model };
    }
    case "set_permission_mode": {
      const { mode: name } = read(z.object({ mode: z.enum(permissionModeNames) }), request);
      const mode = readPermissionMode(name);
      if (mode === undefined) throw new NotDone(`there is no permission mode "${name}"`);
      await command(deps, `/mode ${mode}`, ({ overrides }) => overrides.permissionMode === mode);
      return { mode };
    }
    case "set_effort": {
      const { effort } = read(z.object({ effort: z.enum(efforts).nullable() }), request);
      await command(deps, `/effort ${effort ?? "default"}`, ({ overrides }) => (overrides.effort ?? null) === effort);
      return { effort };
    }
    case "compact":
      return { text: await command(deps, "/compact", () => true) };
    case "rewind_files": {
      const Rewind = z.object({ checkpoint_id: z.uuid(), dry_run: z.boolean().default(false) });
      const { checkpoint_id: checkpoint, dry_run: dryRun } = read(Rewind, request);
      return { text: await command(deps, `/rewind ${checkpoint}${dryRun ? " --dry-run" : ""}`, () => true) };
    }
    case "mcp_status": {
      const { servers } = await deps.gateway.run(api.servers);
      return {
        mcp_servers: servers.map(({ server, state, tools, problem }) => ({
          name: server,
          status: state,
          tools,
          problem,
        })),
      };
    }
    case "mcp_toggle": {
      const Toggle = z.object({ server_name: z.string().min(1), enabled: z.boolean(), tool: z.string().optional() });
      const { server_name: server, enabled, tool } = read(Toggle, request);
      return switched(deps, server, enabled ? "on" : "off", tool);
    }
    case "mcp_reconnect":
      return switched(deps, read(z.object({ server_name: z.string().min(1) }), request).server_name, "restart");
    default:
      throw new NotDone(
        refusals[request.subtype] ??
          `there is no control request "${request.subtype}"; use one of ${subtypes.join(", ")}`,
      );
  }
}

async function switched({ gateway }: ControlDeps, server: string, action: "on" | "off" | "restart", tool?: string) {
  const { server: name, outcome } = await gateway.run(api.switchServer, { server, action, tool });
  return { server_name: name, changed: outcome === "done" };
}

/** Throws NotDone with the gateway's text if the session does not have the requested state afterwards. */
async function command(deps: ControlDeps, text: string, isDone: (session: SessionSummary) => boolean): Promise<string> {
  const outcome = await deps.conversation.say(text);
  if (outcome.state !== "command") throw new NotDone(outcome.text);
  const session = await deps.session();
  if (session === null || !isDone(session)) throw new NotDone(outcome.text);
  return outcome.text;
}

function read<S extends z.ZodType>(schema: S, request: ControlRequest): z.output<S> {
  const parsed = schema.safeParse(request);
  if (parsed.success) return parsed.data;
  throw new NotDone(`${request.subtype}: ${firstIssue(parsed.error)}`);
}
