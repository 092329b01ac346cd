// What agent-core and the tool-runner say to each other.
import { z } from "zod";
import { event, request } from "./contract.ts";
import { GrantToken } from "./grants.ts";
import { McpServerStatusSchema } from "./mcp.ts";
import { contactRoles } from "./people.ts";
import { isolationLevels } from "./settings/isolation.ts";
import { toolClasses } from "./turns.ts";
import { ToolProgressSchema } from "./events.ts";
import { ToolResultPart } from "./messages.ts";

/** What a call may do harm to when nobody looks at it first; permissions decide by it. */
const toolRisks = ["none", "low", "medium", "high", "critical"] as const;
export type ToolRisk = (typeof toolRisks)[number];

/** What a call does to the world. A turn that has read untrusted content may need a yes for what carries it on. */
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
 * What separates `exec` from everything else. `sandbox`: bubblewrap, which hides the service's credentials from commands. `container`: a
 * container without a way to the internet, in which commands can read the service's credentials. `none`: neither.
 */
const containments = ["sandbox", "container", "none"] as const;
export type Containment = (typeof containments)[number];

const ToolDescriptorSchema = z.object({
  name: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/),
  /** Other names that mean this tool when a model uses them; it is shown under `name` alone. */
  aliases: z.array(z.string()),
  /** One line, for lists and for finding the tool. */
  summary: z.string(),
  description: z.string(),
  /** JSON Schema of the arguments; its root is an object. */
  inputSchema: z.record(z.string(), z.unknown()),
  /** Arguments as they may be given; each fits `inputSchema`. Left out: somebody else's tool, which says none. */
  examples: z.array(z.record(z.string(), z.unknown())).min(1).max(3).optional(),
  /** Its arguments are easily got wrong: the model is shown the examples with its definition. */
  showExamples: z.boolean().optional(),
  class: z.enum(toolClasses),
  /** Reads only: may run beside others. */
  readOnly: z.boolean(),
  risk: z.enum(toolRisks),
  effects: z.array(z.enum(toolEffects)),
  /**
   * What writing calls take turns at: the path or the process that `argument` names. A kind without an argument stands for
   * all of its kind.
   */
  resource: z.object({ kind: z.enum(["path", "process", "none"]), argument: z.string().optional() }),
  /** Wall time after which the tool is stopped. */
  timeoutMs: z.number().int().positive(),
  /** How much longer a call may take because it asks people something; left out: it asks nobody. */
  asksMs: z.number().int().nonnegative().optional(),
});
export type ToolDescriptor = z.infer<typeof ToolDescriptorSchema>;

export const toolCatalog = request({
  subject: "tool.catalog",
  server: "tool-runner",
  clients: ["agent-core", "channel-gateway"],
  doc: "The tools this deployment has, sorted by name, and how commands are isolated.",
  input: z.object({}),
  output: z.object({
    tools: z.array(ToolDescriptorSchema),
    /** What stands between `exec` and the machine, in a few words. */
    isolation: z.string(),
    /** `containment` is not `none`. Kept for readers of an older version. */
    contained: z.boolean(),
    /** Left out by an older version: `container` where `contained`, else `none`. */
    containment: z.enum(containments).optional(),
    /** How the MCP servers of the answering replica are; left out: none is configured. */
    mcp: z.array(McpServerStatusSchema).optional(),
  }),
});

/** The workspace of the owner, and of jobs and heartbeats. */
export const mainWorkspaceId = "main";

/** `main`, or 128 bits as hexadecimal digits: it names a folder. */
const WorkspaceIdSchema = z.string().regex(/^(?:main|[0-9a-f]{32})$/, "`main`, or 32 hexadecimal digits");

export const toolCall = request({
  subject: "tool.call.{tool}",
  server: "tool-runner",
  clients: ["agent-core"],
  // A tool of class `once` is protected by its claim in the store, so asking again is safe.
  idempotent: true,
  doc: "Run one tool call. The runner claims the step where its class asks for it, runs it, settles it in the store, then replies with what was settled; a small result of a `pure` call is left to the caller to settle (`unsettledBytes`). Refused with STALE_EPOCH when the runner has seen a higher epoch.",
  input: z.object({
    epoch: z.number().int(),
    sessionId: z.string(),
    turnId: z.string(),
    /** The user's turn that a sub-agent works for; left out: this one. File checkpoints belong to it. */
    rootTurnId: z.string().optional(),
    /** Whose conversation it is: what the agent remembers of its owner is for the owner alone. Left out: the owner's. */
    audience: z.enum(["owner", "others"]).optional(),
    /** Whose word the turn at the top is. Left out: the owner's. Secrets of commands are for the owner's turns alone. */
    role: z.enum(contactRoles).optional(),
    /** The workspace that the call works in: an opaque id for people other than the owner. Left out: the owner's. */
    workspace: WorkspaceIdSchema.optional(),
    /** The turn has read what outsiders wrote; what it writes is marked. */
    tainted: z.boolean().optional(),
    /** The rights of the call, see `Grant`; the fields above are for the runner's own behaviour only. Left out by a leader of an older version: the call is refused with UNAVAILABLE. */
    grant: GrantToken.optional(),
    /** How well a command has to be shut in at least; with less it is refused. Left out: as the runner's settings have it. */
    minIsolation: z.enum(isolationLevels).optional(),
    /**
     * Patterns of paths that this call may not reach, from deny rules about files: checked against the place where a path
     * leads, behind every link, and against each file a search looks into.
     */
    denyPaths: z.array(z.string()).optional(),
    n: z.number().int(),
    callId: z.string(),
    tool: z.string(),
    class: z.enum(toolClasses),
    /** JSON text from the model. */
    input: z.string(),
    timeoutMs: z.number().int().positive(),
    /** Cap on the result, encoded as JSON: all results of one step fit one message of the bus. */
    maxResultBytes: z.number().int().positive(),
    /**
     * A `pure` call's result of at most so many bytes, encoded as JSON, is answered without being settled: the caller settles it
     * with its next commit, and a crash before that runs the call again. Left out: the runner settles every result.
     */
    unsettledBytes: z.number().int().positive().optional(),
  }),
  output: z.object({
    state: z.enum(["done", "failed", "cancelled", "unknown"]),
    result: ToolResultPart,
    /** The store has not been told; see `unsettledBytes`. */
    unsettled: z.literal(true).optional(),
  }),
});
export type ToolCallRequest = z.infer<typeof toolCall.input>;

/** How often a runner says that a call is alive; three silent intervals count as a dead runner. */
export const toolAliveIntervalMs = 1_000;

export const toolAlive = event({
  subject: "tool.alive.{call}",
  publishers: ["tool-runner"],
  consumers: ["agent-core"],
  doc: "The runner still works on this call (`<turn>-<n>`): at its start, then every second, and when it begins or ends to wait for a person.",
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
  doc: "How far this call (`<turn>-<n>`) has come, in the words of its tool; at most one a second.",
  payload: z.object({ turnId: z.string(), n: z.number().int(), progress: ToolProgressSchema }),
});

export const toolCancel = event({
  subject: "tool.cancel.{call}",
  publishers: ["agent-core"],
  consumers: ["tool-runner"],
  doc: "Stop this call (`<turn>-<n>`): the whole process group is killed and the step settled as cancelled.",
  payload: z.object({ epoch: z.number().int(), turnId: z.string(), n: z.number().int() }),
});

/** Whose processes of a session are seen; left out: everybody's, for the owner. */
const ProcessScope = z.string().optional();

const ProcessQuestionSchema = z.object({
  sessionId: z.string(),
  scope: ProcessScope,
  id: z.string(),
  action: z.enum(["poll", "log", "input", "signal"]),
  /** poll: how long to wait for something new. */
  waitMs: z.number().int().min(0),
  /** log: first character; null = the first that is kept. */
  offset: z.number().int().min(0).nullable(),
  /** poll, log: most characters. */
  limit: z.number().int().min(1),
  /** input: the text. */
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
  // A poll that is answered twice has lost what the first answer said.
  idempotent: false,
  doc: "Look at or act on a background process that another tool-runner has. One that is not there, or is another session's, is an answer too.",
  input: ProcessQuestionSchema,
  output: z.object({
    content: z.string(),
    isError: z.boolean(),
    /** The answer says that the process has ended, and how. */
    ended: z.boolean().optional(),
  }),
});

const ProcessLineSchema = z.object({
  id: z.string(),
  /** Its beginning. */
  command: z.string(),
  startedAt: z.string(),
  /** How it ended; null while it runs. */
  ended: z.string().nullable(),
  /** Printed so far. */
  characters: z.number().int(),
});
export type ProcessLine = z.infer<typeof ProcessLineSchema>;

export const toolProcesses = request({
  subject: "tool.processes",
  server: "tool-runner",
  clients: ["tool-runner"],
  served: "all",
  doc: "The background processes this tool-runner has of a session.",
  input: z.object({ sessionId: z.string(), scope: ProcessScope }),
  output: z.object({ replica: z.string(), processes: z.array(ProcessLineSchema) }),
});

export const toolStop = request({
  subject: "tool.stop.{replica}",
  server: "tool-runner",
  clients: ["channel-gateway"],
  served: "all",
  idempotent: true,
  doc: "A person ends what a session has running in the background on this tool-runner: its commands are killed, and the agent is not told of their end. Answered when they are gone; a session that has none is no error.",
  input: z.object({ sessionId: z.string() }),
  output: z.object({}),
});

/** The `{call}` token of `tool.alive` and `tool.cancel`. */
export function callToken(turnId: string, n: number): string {
  return `${turnId}-${n}`;
}
