// Messages between agent-core and tool-runners.
import { z } from "zod";
import { event, request } from "./contract.ts";
import { GrantToken } from "./grants.ts";
import { McpServerStatusSchema } from "./mcp.ts";
import { contactRoles } from "./principals.ts";
import { isolationLevels } from "./settings/isolation.ts";
import { toolClasses } from "./turns.ts";
import { ToolProgressSchema } from "./events.ts";
import { ToolResultPart } from "./messages.ts";

/** How much harm an unreviewed call can do; permission decisions use it. */
const toolRisks = ["none", "low", "medium", "high", "critical"] as const;
export type ToolRisk = (typeof toolRisks)[number];

/** The effects of a call. In a turn that has read untrusted content, effects that can pass it on may require approval. */
const toolEffects = [
  "reads_untrusted",
  "sends_out",
  "writes_memory",
  "schedules",
  "executes",
  "reads_files",
  "writes_files",
] as const;
export type ToolEffect = (typeof toolEffects)[number];

/**
 * What isolates `exec`. `sandbox`: bubblewrap, which hides the service's credentials from commands. `container`: a container without
 * internet access, in which commands can read the service's credentials. `none`: neither.
 */
const containments = ["sandbox", "container", "none"] as const;
export type Containment = (typeof containments)[number];

const ToolDescriptorSchema = z.object({
  name: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/),
  /** Alternative names that are accepted from a model; prompts contain only `name`. */
  aliases: z.array(z.string()),
  /** One line, for lists and tool search. */
  summary: z.string(),
  description: z.string(),
  /** JSON Schema of the arguments; its root is an object. */
  inputSchema: z.record(z.string(), z.unknown()),
  /** Example arguments; each matches `inputSchema`. Omitted: a third-party tool without examples. */
  examples: z.array(z.record(z.string(), z.unknown())).min(1).max(3).optional(),
  /** Models often get its arguments wrong: the definition in the prompt includes the examples. */
  showExamples: z.boolean().optional(),
  class: z.enum(toolClasses),
  /** Only reads: may run in parallel with other calls. */
  readOnly: z.boolean(),
  risk: z.enum(toolRisks),
  effects: z.array(z.enum(toolEffects)),
  /**
   * Writing calls on the same resource run one after another: the path or the process that `argument` names. Without `argument` a
   * writing call may write any resource and runs alone; `none`: it writes none that others could.
   */
  resource: z.object({ kind: z.enum(["path", "process", "none"]), argument: z.string().optional() }),
  /** Wall-clock time after which the tool is stopped. */
  timeoutMs: z.number().int().positive(),
  /** Additional time for a call that waits for people's answers; omitted: it asks no questions. */
  asksMs: z.number().int().nonnegative().optional(),
});
export type ToolDescriptor = z.infer<typeof ToolDescriptorSchema>;

export const toolCatalog = request({
  subject: "tool.catalog",
  server: "tool-runner",
  clients: ["agent-core", "channel-gateway"],
  doc: "Get the tools of this deployment, sorted by name, and the isolation of commands.",
  input: z.object({}),
  output: z.object({
    tools: z.array(ToolDescriptorSchema),
    /** The isolation of `exec`, as a short text. */
    isolation: z.string(),
    /** `containment` is not `none`. Kept for readers of an older version. */
    contained: z.boolean(),
    /** Omitted by an older version: `container` where `contained`, else `none`. */
    containment: z.enum(containments).optional(),
    /** Status of the replying replica's MCP servers; omitted: none is configured. */
    mcp: z.array(McpServerStatusSchema).optional(),
  }),
});

/** The workspace of the owner, and of jobs and heartbeats. */
export const mainWorkspaceId = "main";

const folderPrefix = "folder-";

/** The id of the workspace that `[workspace.folders]` has under this name. */
export function folderWorkspaceId(name: string): string {
  return `${folderPrefix}${name}`;
}

/** Whether a workspace is the owner's: the main one, or a named folder. */
export function isOwnersWorkspace(id: string): boolean {
  return id === mainWorkspaceId || id.startsWith(folderPrefix);
}

/** `main`, the id of a named folder, or 128 bits as hexadecimal digits; used as a folder name. */
export const WorkspaceIdSchema = z
  .string()
  .regex(
    /^(?:main|[0-9a-f]{32}|folder-[a-z0-9][a-z0-9_-]{0,39})$/,
    "must be `main`, `folder-<name>` or 32 hexadecimal digits",
  );

export const toolCall = request({
  subject: "tool.call.{tool}",
  server: "tool-runner",
  clients: ["agent-core"],
  // The claim in the store protects calls of class `once`, so a retry is safe.
  idempotent: true,
  doc: "Run one tool call. The runner claims the step if its class requires that, runs it, settles it in the store and replies with the settled result. The caller settles a small result of a `pure` call (`unsettledBytes`). Refused with STALE_EPOCH when the runner has seen a higher epoch.",
  input: z.object({
    epoch: z.number().int(),
    sessionId: z.string(),
    turnId: z.string(),
    /** The user's turn that a sub-agent works for; omitted: this one. File checkpoints belong to it. */
    rootTurnId: z.string().optional(),
    /** The audience of the conversation: only the owner's conversations may use the agent's memory of the owner. Omitted: the owner's. */
    audience: z.enum(["owner", "others"]).optional(),
    /** Role of the sender of the root turn. Omitted: the owner's. Only the owner's turns may use command secrets. */
    role: z.enum(contactRoles).optional(),
    /** The workspace of the call: an opaque id for people other than the owner, or that of a named folder. Omitted: the owner's main one. */
    workspace: WorkspaceIdSchema.optional(),
    /** The turn has read untrusted content; everything it writes is marked. */
    tainted: z.boolean().optional(),
    /** The rights of the call, see `Grant`; the fields above are for the runner's own behaviour only. Omitted by a leader of an older version: the call is refused with UNAVAILABLE. */
    grant: GrantToken.optional(),
    /** Later calls of the step start after this one, so a command does not move to the background unless the call asks for it. Omitted: false. */
    callsFollow: z.boolean().optional(),
    /** Minimum isolation of a command; with less the call is refused. Omitted: the runner's settings apply. */
    minIsolation: z.enum(isolationLevels).optional(),
    /**
     * Path patterns that this call may not access, from deny rules about files. They are checked against the resolved path, after
     * all links, and against each file that a search reads.
     */
    denyPaths: z.array(z.string()).optional(),
    n: z.number().int(),
    callId: z.string(),
    tool: z.string(),
    class: z.enum(toolClasses),
    /** JSON text from the model. */
    input: z.string(),
    timeoutMs: z.number().int().positive(),
    /** Maximum size of the result as encoded JSON, so that all results of one step fit in one bus message. */
    maxResultBytes: z.number().int().positive(),
    /** Maximum characters of the result's content that are shown. Omitted: about 60,000. */
    maxResultCharacters: z.number().int().positive().optional(),
    /**
     * A result of a `pure` call of at most this many bytes as encoded JSON is returned without being settled: the caller settles it
     * with its next commit, and after a crash before that the call runs again. Omitted: the runner settles every result.
     */
    unsettledBytes: z.number().int().positive().optional(),
  }),
  output: z.object({
    state: z.enum(["done", "failed", "cancelled", "unknown"]),
    result: ToolResultPart.omit({ untainted: true }),
    /** The result is not settled in the store; see `unsettledBytes`. */
    unsettled: z.literal(true).optional(),
  }),
});
export type ToolCallRequest = z.infer<typeof toolCall.input>;

/** How often a runner reports that a call is alive; after three missed reports the runner counts as dead. */
export const toolAliveIntervalMs = 1_000;

export const toolAlive = event({
  subject: "tool.alive.{call}",
  publishers: ["tool-runner"],
  consumers: ["agent-core"],
  doc: "The runner still works on this call (`<turn>-<n>`): sent at its start, then every second, and when waiting for a person begins or ends.",
  payload: z.object({
    turnId: z.string(),
    n: z.number().int(),
    runner: z.string(),
    /** It waits for a person's answer. */
    asks: z.boolean().optional(),
  }),
});

export const toolProgress = event({
  subject: "tool.progress.{call}",
  publishers: ["tool-runner"],
  consumers: ["agent-core"],
  doc: "Progress of this call (`<turn>-<n>`), as its tool reports it; at most one per second.",
  payload: z.object({ turnId: z.string(), n: z.number().int(), progress: ToolProgressSchema }),
});

export const toolCancel = event({
  subject: "tool.cancel.{call}",
  publishers: ["agent-core"],
  consumers: ["tool-runner"],
  doc: "Stop this call (`<turn>-<n>`): the whole process group is killed and the step settled as cancelled.",
  payload: z.object({ epoch: z.number().int(), turnId: z.string(), n: z.number().int() }),
});

/** The person whose processes are visible; omitted: all processes, for the owner. */
const ProcessScope = z.string().optional();

const ProcessQuestionSchema = z.object({
  sessionId: z.string(),
  scope: ProcessScope,
  id: z.string(),
  action: z.enum(["poll", "log", "input", "signal"]),
  /** poll, log: how long to wait for new output. */
  waitMs: z.number().int().min(0),
  /** log: first character; null: the first one still available. */
  offset: z.number().int().min(0).nullable(),
  /** poll, log: maximum characters. */
  limit: z.number().int().min(1),
  /** input: the text to write. */
  input: z.string(),
  /** input: closes the standard input afterwards. */
  end: z.boolean(),
  signal: z.enum(["SIGTERM", "SIGINT", "SIGKILL"]),
});
export type ProcessQuestion = z.infer<typeof ProcessQuestionSchema>;

export const toolProcess = request({
  subject: "tool.process.{replica}",
  server: "tool-runner",
  clients: ["tool-runner"],
  served: "all",
  // A repeated poll would lose the output of the first reply.
  idempotent: false,
  doc: "Inspect or control a background process of another tool-runner. A process that does not exist or belongs to another session is a normal reply, not an error.",
  input: ProcessQuestionSchema,
  output: z.object({
    content: z.string(),
    isError: z.boolean(),
    /** The reply reports that the process ended, and how. */
    ended: z.boolean().optional(),
  }),
});

const ProcessLineSchema = z.object({
  id: z.string(),
  /** The beginning of the command. */
  command: z.string(),
  startedAt: z.string(),
  /** How it ended; null while it runs. */
  ended: z.string().nullable(),
  /** Characters of output so far. */
  characters: z.number().int(),
});
export type ProcessLine = z.infer<typeof ProcessLineSchema>;

export const toolProcesses = request({
  subject: "tool.processes",
  server: "tool-runner",
  clients: ["tool-runner"],
  served: "all",
  doc: "List the background processes of a session on this tool-runner.",
  input: z.object({ sessionId: z.string(), scope: ProcessScope }),
  output: z.object({ replica: z.string(), processes: z.array(ProcessLineSchema) }),
});

export const toolStop = request({
  subject: "tool.stop.{replica}",
  server: "tool-runner",
  clients: ["channel-gateway"],
  served: "all",
  idempotent: true,
  doc: "Kill a session's background processes on this tool-runner at a person's request. The agent gets no exit notice. The reply follows after they have ended; a session without processes is not an error.",
  input: z.object({ sessionId: z.string() }),
  output: z.object({}),
});

/** The `{call}` token of `tool.alive` and `tool.cancel`. */
export function callToken(turnId: string, n: number): string {
  return `${turnId}-${n}`;
}
