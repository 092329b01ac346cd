// What a tool is: its description for the model, its arguments, what may be done with it after a crash, and its work.
// It does not know how calls arrive, are claimed or settled.
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
import type { KeptContents } from "./attachments.ts";
import type { Checkpoint } from "./checkpoints/keeper.ts";
import type { DocumentView } from "./documents/seen-by.ts";
import type { Searcher } from "./search/search.ts";
import type { Person } from "./serving/person.ts";
import type { Sampler } from "./serving/sampler.ts";
import type { TextWorker } from "./text/text-worker.ts";
import type { Workspace } from "./workspace/workspace.ts";

/** What the model gets back. A failure of a tool is content with `isError`, never an exception. */
export interface ToolOutput {
  content: string;
  isError: boolean;
  /** What the model is shown beside the text: pictures, documents. */
  attachments?: Attachment[];
  /** The content is, or may be, derived from untrusted content. */
  untrusted?: true;
  /** Files whose names or lines the content shows, of those that were searched; left out: all that the tool opened. */
  files?: ReadonlySet<string>;
  /** Content that the call has kept for the session, without showing it. */
  kept?: Attachment[];
  /** Where a command ran: what stood between it and the machine, in a word. */
  isolation?: string;
}

export interface ToolContext {
  workspace: Workspace;
  /** MEMORY.md, memory/, skills/ and the like, which the store keeps; null where all of the workspace is on the disk. */
  documents: DocumentView | null;
  searcher: Searcher;
  /** Does work on whole texts that may take long. */
  textWorker: TextWorker;
  /** Keeps files as they are: a tool says which it is about to change before it does. Documents keep their versions themselves. */
  checkpoint: Checkpoint;
  /** Content by its hash; left out: no attachments are kept here. */
  contents?: KeptContents;
  /** The person of the turn; left out: this tool may ask nothing. */
  person?: Person;
  /** Has a model answer something for this call; left out: nobody does. */
  sampler?: Sampler;
  /** Shows how far the call has come; as often as it likes. */
  progress?: (progress: ToolProgress) => void;
  /** Aborted when the call is cancelled or its time is over; the tool then ends what it started. */
  signal: AbortSignal;
  /** The rights of the call, signed by the leader: for what is requested of the store in its name. */
  grant: string;
  /** The session the call belongs to; what outlives a call (a background process) belongs to it too. */
  sessionId: string;
  turnId: string;
  /** Whose word the turn at the top is; left out: the owner's. */
  role?: ContactRole;
  /** The turn has read what outsiders wrote. */
  tainted: boolean;
  /** What the call started goes on in the background until then. */
  outlives?: (end: Promise<unknown>) => void;
  /** Patterns of paths that the call may not reach; `workspace` resolves none of them. Left out: there are none. */
  denyPaths?: readonly string[] | undefined;
  /** How well a command has to be shut in at least, by the call; left out: as the settings have it. */
  minIsolation?: IsolationLevel | undefined;
  /** The same for every run of this call: `<turn>:<n>`. */
  idempotencyKey: string;
  /** The call's name in a file name. */
  callName: string;
}

export interface Tool {
  readonly descriptor: ToolDescriptor;
  /** Bounds of its arguments, work and result, a sentence each: for docs/tools.md. */
  readonly limits: readonly string[];
  /** What its arguments are checked with; left out: whoever carries it out checks them. */
  readonly args?: z.ZodType;
  /** Runs the call. Arguments that do not fit are an error result that names the field; what is thrown is a bug. */
  call(args: unknown, context: ToolContext): Promise<ToolOutput>;
}

export interface ToolSpec<S extends z.ZodType> {
  name: string;
  /** Other names that mean this tool. */
  aliases?: readonly string[];
  /** One line: what it does. */
  summary: string;
  /** For the model: what it does, when to use it, what comes back. */
  description: string;
  args: S;
  /** One to three calls as they may be made; see the descriptor. */
  examples?: readonly z.input<S>[];
  /** The model is shown them with the definition. */
  showExamples?: boolean;
  class: ToolClass;
  readOnly: boolean;
  risk: ToolRisk;
  effects: readonly ToolEffect[];
  /** What writing calls take turns at; none when left out. */
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
      resource: spec.resource ?? { kind: "none" },
      timeoutMs: spec.timeoutMs,
    },
    limits: spec.limits ?? [],
    args: spec.args,
    call: async (args, context) => {
      const parsed = spec.args.safeParse(args);
      if (!parsed.success) {
        return failure(
          `The arguments of ${spec.name} are wrong.\n${describe(parsed.error)}\n${argumentNames(inputSchema)}`,
        );
      }
      return spec.run(parsed.data, context);
    },
  };
}

const Example = z.record(z.string(), z.unknown());

/** Whose background processes a call starts and sees; undefined: the owner's, who sees all of the session. */
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

/** How the model would write a call: the literal next step in a notice. */
export function callText(tool: string, args: Record<string, unknown>): string {
  return `${tool}(${JSON.stringify(args)})`;
}

/** The names a call may use, so that the next try can be right. */
function argumentNames(schema: Record<string, unknown>): string {
  const { properties = {}, required = [] } = ObjectSchema.parse(schema);
  const names = Object.keys(properties).map((name) => (required.includes(name) ? `${name} (required)` : name));
  return names.length === 0 ? "It takes no arguments." : `Its arguments are: ${names.join(", ")}.`;
}

const ObjectSchema = z.object({
  properties: z.record(z.string(), z.unknown()).optional(),
  required: z.array(z.string()).optional(),
});

/** One line an issue: the field, and what is wrong with it. */
function describe(error: z.ZodError): string {
  return error.issues
    .map((issue) => `- ${issue.path.length === 0 ? "arguments" : issue.path.join(".")}: ${issue.message}`)
    .join("\n");
}
