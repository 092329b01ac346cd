// Defines a tool: its description for the model, arguments, effect class and implementation.
// It does not depend on how calls arrive, are claimed or are settled.
import type {
  Attachment,
  ContactRole,
  IsolationLevel,
  ToolClass,
  ToolDescriptor,
  ToolEffect,
  ToolProgress,
  ToolRisk,
} from "@parley/contracts";
import { z } from "zod";
import type { AttachmentStore } from "./attachments.ts";
import type { Checkpoint } from "../snapshots/recorder.ts";
import type { DocumentView } from "../documents/documents.ts";
import type { Searcher } from "../search/search.ts";
import type { PersonPrompt, SamplingClient } from "./requests.ts";
import type { Workspace } from "../workspace/workspace.ts";

/** The result for the model. A failed call is content with `isError`, never an exception. */
export interface ToolOutput {
  content: string;
  isError: boolean;
  /** Pictures and documents that the model is shown with the text. */
  shownAttachments?: Attachment[];
  /** The content is, or may be, derived from untrusted content. */
  untrusted?: true;
  /** The searched files whose names or lines the content shows. Default: every file that the tool opened. */
  files?: ReadonlySet<string>;
  /** Attachments that the call has stored for the session without showing them. */
  storedAttachments?: Attachment[];
  /** What isolated the command, as `isolationTag` names it. */
  isolation?: string;
}

export interface ToolContext {
  workspace: Workspace;
  /** MEMORY.md, memory/, skills/ and the like, which are in the store; null when all of the workspace is on disk. */
  documents: DocumentView | null;
  searcher: Searcher;
  /** Captures files: a tool must report each file before changing it. Documents have their own versions. */
  checkpoint: Checkpoint;
  /** Attachment contents by hash; undefined: attachments are not available. */
  attachmentStore?: AttachmentStore;
  /** The person of the turn; undefined: this tool may not ask questions. */
  askPerson?: PersonPrompt;
  /** Requests model answers for this call; undefined: sampling is not available. */
  sampler?: SamplingClient;
  /** Reports progress of the call; may be called at any rate. */
  progress?: (progress: ToolProgress) => void;
  /** Aborted when the call is cancelled or times out; the tool then ends everything it started. */
  signal: AbortSignal;
  /** The rights of the call, signed by the leader; sent with its requests to the store. */
  grant: string;
  /** The session of the call and of the background processes that it starts. */
  sessionId: string;
  turnId: string;
  /** The role of the principal of the top-level turn. Default: owner. */
  role?: ContactRole;
  /** The turn has read untrusted content. */
  tainted: boolean;
  /** Registers background work of the call that lasts until the promise settles. */
  waitUntil?: (end: Promise<unknown>) => void;
  /** Later calls of the same model reply start after this one. */
  hasLaterCalls?: boolean;
  /** The minimum isolation that the call requires for a command. Default: as in the settings. */
  minIsolation?: IsolationLevel | undefined;
  /** Characters of the result that the model is shown; a tool that returns pages makes them fit. Default: the tool's own limit. */
  maxPageCharacters?: number;
  /** Identical for every run of this call: `<turn>:<n>`. */
  idempotencyKey: string;
  /** Identifies the call in file names. */
  callName: string;
}

export interface Tool {
  readonly descriptor: ToolDescriptor;
  /** Limits of arguments, work and result, one sentence each, for docs/tools.md. */
  readonly limits: readonly string[];
  /** Schema of the arguments; undefined: the MCP server validates them. */
  readonly args?: z.ZodType;
  /** Runs the call. Invalid arguments give an error result that names the field; an exception is a bug. */
  call(args: unknown, context: ToolContext): Promise<ToolOutput>;
}

export interface ToolSpec<S extends z.ZodType> {
  name: string;
  /** Other accepted names of the tool. */
  aliases?: readonly string[];
  /** One line: what the tool does. */
  summary: string;
  /** For the model: what the tool does, when to use it, what it returns. */
  description: string;
  args: S;
  /** One to three valid calls; see the descriptor. */
  examples?: readonly z.input<S>[];
  /** The model is shown the examples with the definition. */
  showExamples?: boolean;
  class: ToolClass;
  readOnly: boolean;
  risk: ToolRisk;
  effects: readonly ToolEffect[];
  /** The resource that serialises writing calls. Default: `none` for a read-only tool; for any other `path` without an argument, so it runs alone. */
  resource?: ToolDescriptor["resource"];
  /** Wall time after which the call is stopped. */
  timeoutMs: number;
  limits?: readonly string[];
  run(args: z.infer<S>, context: ToolContext): Promise<ToolOutput>;
}

export function defineTool<S extends z.ZodType>(spec: ToolSpec<S>): Tool {
  const { $schema: _, ...inputSchema } = z.toJSONSchema(spec.args, { io: "input" });
  return {
    descriptor: {
      name: spec.name,
      aliases: [...(spec.aliases ?? [])],
      summary: spec.summary,
      description: spec.description,
      inputSchema,
      ...(spec.examples === undefined ? {} : { examples: spec.examples.map((example) => Example.parse(example)) }),
      ...(spec.showExamples === true ? { showExamples: true } : {}),
      class: spec.class,
      readOnly: spec.readOnly,
      risk: spec.risk,
      effects: [...spec.effects],
      resource: spec.resource ?? { kind: spec.readOnly ? "none" : "path" },
      timeoutMs: spec.timeoutMs,
    },
    limits: spec.limits ?? [],
    args: spec.args,
    call: async (args, context) => {
      const parsed = spec.args.safeParse(args);
      if (!parsed.success) {
        return failure(`Invalid arguments for ${spec.name}:\n${describe(parsed.error)}\n${argumentNames(inputSchema)}`);
      }
      return spec.run(parsed.data, context);
    },
  };
}

const Example = z.record(z.string(), z.unknown());

/** The scope of the background processes that a call starts and sees; undefined (owner): all processes of the session. */
export function processScope({
  role = "owner",
  workspace,
}: Pick<ToolContext, "role" | "workspace">): string | undefined {
  return role === "owner" ? undefined : `${role}:${workspace.id}`;
}

export function success(content: string): ToolOutput {
  return { content, isError: false };
}

export function failure(content: string): ToolOutput {
  return { content, isError: true };
}

/** Formats a call for a notice, so that the model can repeat it literally. */
export function formatCall(tool: string, args: Record<string, unknown>): string {
  return `${tool}(${JSON.stringify(args)})`;
}

/** Lists the accepted argument names, so that the model can correct its call. */
function argumentNames(schema: Record<string, unknown>): string {
  const { properties = {}, required = [] } = ObjectSchema.parse(schema);
  const names = Object.keys(properties).map((name) => (required.includes(name) ? `${name} (required)` : name));
  return names.length === 0 ? "The tool takes no arguments." : `Accepted arguments: ${names.join(", ")}.`;
}

const ObjectSchema = z.object({
  properties: z.record(z.string(), z.unknown()).optional(),
  required: z.array(z.string()).optional(),
});

/** One line per issue: the field and the problem. */
function describe(error: z.ZodError): string {
  return error.issues
    .map((issue) => `- ${issue.path.length === 0 ? "arguments" : issue.path.join(".")}: ${issue.message}`)
    .join("\n");
}
