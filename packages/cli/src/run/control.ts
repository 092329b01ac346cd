// Executes control requests of a program during a run, or refuses them with a reason.

import {
  answerInstructions,
  type AnswerSchema,
  efforts,
  errorMessage,
  type SessionSummary,
  slashCommands,
} from "@parley/contracts";
import { z } from "zod";

import type { Conversation } from "../chat/conversation.ts";
import type { Gateway } from "../cluster/gateway.ts";
import { api } from "../cluster/api.ts";
import { firstIssue } from "../io/io.ts";
import type { ControlRequest } from "./input.ts";
import { permissionModeNames, readPermissionMode } from "@parley/projections";
import { serverStatus } from "./agent-info.ts";
import { readAnswerSchema } from "./structured-output.ts";

export interface ControlDeps {
  readonly conversation: Pick<Conversation, "say" | "cancel" | "isBusy">;
  /** The current state of this run's session; null while there is none. */
  session(): Promise<SessionSummary | null>;
  readonly gateway: Pick<Gateway, "run">;
  /** Registers the hooks of the program. Throws an error that names a hook that cannot run. */
  registerHooks(hooks: unknown): void;
  /** Adds the tools of the program's MCP servers and its sub-agents to the session. Throws Error with the reason of a refusal. */
  define(servers: readonly string[], manifests: unknown, agents: unknown): Promise<readonly AgentInfo[]>;
  /** Calls the hooks on a compaction. Why it is not requested, or null. */
  beforeCompact(): Promise<string | null>;
  /** Adds MCP servers that this process reaches; returns their names. Throws Error for one that cannot be used. */
  addServers(servers: unknown): readonly string[];
  /** The names of the program's MCP servers. */
  serverNames(): readonly string[];
  /** Answers must match it. */
  requireSchema(schema: AnswerSchema): void;
  /** Sets instructions for the agent, sent with the next message. */
  instruct(text: string): void;
  /** The program also wants the texts of sub-agents. */
  forwardTexts(): void;
}

/** A sub-agent in the answer to `initialize`. */
export interface AgentInfo {
  readonly name: string;
  readonly description: string;
}

export type ControlAnswer =
  | { subtype: "success"; request_id: string; response: Readonly<Record<string, unknown>> }
  | { subtype: "error"; request_id: string; error: string };

/** Thrown with the reason. */
class ControlRequestError extends Error {
  override readonly name = "ControlRequestError";
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

const addServers = "add MCP servers in parley.toml, [mcp.servers.<name>]";

/** Requests of the SDK that Parley does not support, with the reason. */
const refusals: Readonly<Record<string, string>> = {
  set_max_thinking_tokens: "reasoning is controlled by effort: use set_effort with one of " + efforts.join(", "),
  can_use_tool: "only Parley sends this request; answer it with a control_response",
  mcp_set_servers: `${addServers}, and switch them with mcp_toggle`,
  mcp_message: "only Parley sends this request; answer it with a control_response",
  hook_callback: "only Parley sends this request; answer it with a control_response",
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
      return initialize(deps, request);
    case "interrupt": {
      const running = conversation.isBusy;
      conversation.cancel();
      return { interrupted: running };
    }
    case "set_model": {
      const { model = null } = read(z.object({ model: z.string().regex(/^\S+$/).nullish() }), request);
      await command(deps, `/model ${model ?? "default"}`, ({ overrides }) => (overrides.model ?? null) === model);
      return { model };
    }
    case "set_permission_mode": {
      const { mode: name } = read(z.object({ mode: z.enum(permissionModeNames) }), request);
      const mode = readPermissionMode(name);
      if (mode === undefined) throw new ControlRequestError(`there is no permission mode "${name}"`);
      await command(deps, `/mode ${mode}`, ({ overrides }) => overrides.permissionMode === mode);
      return { mode };
    }
    case "set_effort": {
      const { effort } = read(z.object({ effort: z.enum(efforts).nullable() }), request);
      await command(deps, `/effort ${effort ?? "default"}`, ({ overrides }) => (overrides.effort ?? null) === effort);
      return { effort };
    }
    case "set_max_thinking_tokens": {
      const { max_thinking_tokens: tokens } = request;
      if (tokens === null || tokens === undefined) return {};
      throw new ControlRequestError(refusals["set_max_thinking_tokens"] ?? "");
    }
    case "compact": {
      const refusal = await deps.beforeCompact();
      if (refusal !== null) throw new ControlRequestError(refusal);
      return { text: await command(deps, "/compact", () => true) };
    }
    case "rewind_files": {
      const Rewind = z.object({ checkpoint_id: z.uuid(), dry_run: z.boolean().default(false) });
      const { checkpoint_id: checkpoint, dry_run: dryRun } = read(Rewind, request);
      return { text: await command(deps, `/rewind ${checkpoint}${dryRun ? " --dry-run" : ""}`, () => true) };
    }
    case "mcp_status": {
      const { servers } = await deps.gateway.run(api.servers);
      const states = servers.map(({ server, state, tools, problem }) => ({
        name: server,
        status: serverStatus(state),
        state,
        tools,
        problem,
      }));
      const own = deps.serverNames().map((name) => ({ name, status: "connected", state: "ready", problem: null }));
      return { mcp_servers: [...states, ...own], mcpServers: [...states, ...own] };
    }
    case "mcp_toggle": {
      const Toggle = z.object({ enabled: z.boolean(), tool: z.string().optional() });
      const { enabled, tool } = read(Toggle, request);
      return switched(deps, serverName(request), enabled ? "on" : "off", tool);
    }
    case "mcp_reconnect":
      return switched(deps, serverName(request), "restart");
    default:
      throw new ControlRequestError(
        refusals[request.subtype] ??
          `there is no control request "${request.subtype}"; use one of ${subtypes.join(", ")}`,
      );
  }
}

/** The name in Parley's or the SDK's spelling. */
function serverName({ serverName: camel, server_name: snake = camel, ...request }: ControlRequest): string {
  return read(z.object({ server_name: z.string().min(1) }), { ...request, server_name: snake }).server_name;
}

/** Options of `initialize` that change the answer and cannot be honoured, with the reason. */
const unsupportedOptions = [
  ["plugins", "hooks, skills and MCP servers belong to the cluster"],
  ["skills", "skills belong to the cluster"],
  ["toolAliases", "tools have fixed names"],
  ["planModeInstructions", "the cluster has its own instructions for the plan mode"],
] as const;

const Initialize = z.object({
  hooks: z.unknown().optional(),
  sdkMcpServers: z.array(z.string()).nullish(),
  sdkMcpServerManifests: z.unknown().optional(),
  systemPrompt: z.union([z.string(), z.array(z.string())]).nullish(),
  appendSystemPrompt: z.string().nullish(),
  title: z.string().nullish(),
  forwardSubagentText: z.boolean().nullish(),
});

/** Absent or without content. */
function isUnset(value: unknown): boolean {
  if (typeof value === "object" && value !== null) return Object.keys(value).length === 0;
  return value === undefined || value === null || value === "";
}

/** Throws ControlRequestError for options that the cluster cannot apply. */
async function initialize(deps: ControlDeps, request: ControlRequest): Promise<Readonly<Record<string, unknown>>> {
  const options = read(Initialize, request);
  const { jsonSchema } = request;
  const schema = jsonSchema === undefined || jsonSchema === null ? null : readAnswerSchema(jsonSchema);
  for (const [name, reason] of unsupportedOptions) {
    if (!isUnset(request[name])) throw new ControlRequestError(`${name}: ${reason}`);
  }
  deps.registerHooks(options.hooks ?? {});
  const servers = [...(options.sdkMcpServers ?? []), ...deps.addServers(request["mcpServers"])];
  const own = await deps.define(servers, options.sdkMcpServerManifests, request["agents"]);
  if (options.forwardSubagentText === true) deps.forwardTexts();
  if (schema !== null) deps.requireSchema(schema);
  const format = schema === null ? "" : answerInstructions(schema);
  const instructions = [options.systemPrompt ?? "", options.appendSystemPrompt ?? "", format].flat();
  const text = instructions.filter((each) => each.trim() !== "").join("\n\n");
  if (text !== "") deps.instruct(text);
  const agent = await deps.gateway.run(api.agent).catch(() => null);
  return {
    subtypes,
    commands: slashCommands.map(({ name, usage, summary }) => ({
      name: name.slice(1),
      description: summary,
      argumentHint: usage.slice(name.length).trim(),
    })),
    agents: [
      ...(agent?.profiles ?? []).filter((name) => own.every((each) => each.name !== name)).map(withoutText),
      ...own,
    ],
    models: agent?.model === null || agent === null ? [] : [modelInfo(agent.model)],
    output_style: "default",
    available_output_styles: ["default"],
    account: {},
    hooks_applied: true,
    mcp_servers_applied: true,
  };
}

function modelInfo({ provider, model }: { provider: string; model: string }) {
  return { value: `${provider}:${model}`, displayName: model, description: provider };
}

async function switched({ gateway }: ControlDeps, server: string, action: "on" | "off" | "restart", tool?: string) {
  const { server: name, outcome } = await gateway.run(api.switchServer, { server, action, tool });
  return { server_name: name, changed: outcome === "done" };
}

/** Throws ControlRequestError with the gateway's text if the session does not have the requested state afterwards. */
async function command(deps: ControlDeps, text: string, isDone: (session: SessionSummary) => boolean): Promise<string> {
  const outcome = await deps.conversation.say(text);
  if (outcome.state !== "command") throw new ControlRequestError(outcome.text);
  const session = await deps.session();
  if (session === null || !isDone(session)) throw new ControlRequestError(outcome.text);
  return outcome.text;
}

function read<S extends z.ZodType>(schema: S, request: ControlRequest): z.output<S> {
  const parsed = schema.safeParse(request);
  if (parsed.success) return parsed.data;
  throw new ControlRequestError(`${request.subtype}: ${firstIssue(parsed.error)}`);
}

/** The settings' profiles are known by name. */
function withoutText(name: string): AgentInfo {
  return { name, description: "" };
}
