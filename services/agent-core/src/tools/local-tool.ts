// Defines a tool that agent-core runs itself, for example to send messages or start sub-agents. Local tools access no files,
// processes or network.
import { parseJson } from "@parley/kit";
import type { Bus } from "@parley/bus";
import type { Logger } from "@parley/chassis";
import type {
  Attachment,
  ClaimedTurn,
  DurableEvent,
  LiveEvent,
  Outgoing,
  ParleySettings,
  ToolDescriptor,
  ToolResult,
  ToolStep,
} from "@parley/contracts";
import { z } from "zod";
import type { LeaderStore } from "../store-client/leader-store.ts";
import type { TurnPolicy } from "../policy/turn-policy.ts";

export interface LocalContext {
  bus: Bus;
  log: Logger;
  leaderStore: LeaderStore;
  settings: ParleySettings;
  policy: TurnPolicy;
  turn: ClaimedTurn;
  step: ToolStep;
  /** The name by which the model knows the tool; it may be an alias. */
  name: string;
  /** Whether the turn has read untrusted content. */
  tainted: boolean;
  /** Who can read the conversation: the owner's data is for the owner only. */
  audience: "owner" | "others";
  /** Publishes an event to the session's subscribers. */
  publish: (event: DurableEvent | LiveEvent) => void;
}

export type LocalOutcome =
  /** The loop settles the call and commits its outgoing texts in the same transaction. `untrusted`: the content taints the message. */
  | {
      status: "done" | "failed";
      content: string;
      outgoing?: Outgoing[];
      /** Files that the call sent to people, for readers of the session. */
      sent?: Attachment[];
      sleeps?: boolean;
      untrusted?: boolean;
    }
  /** The store has settled it in its own commit. */
  | { status: "settled"; result: ToolResult }
  /** Another party will settle the call; at `until` (ISO 8601) it is resumed in any case. */
  | { status: "waiting"; until?: string };

export interface LocalTool {
  readonly descriptor: ToolDescriptor;
  /** Limits of its arguments, work and result, one sentence each, for docs/tools.md. */
  readonly limits: readonly string[];
  /** Validates its arguments. */
  readonly args: z.ZodType;
  run(input: string, context: LocalContext): Promise<LocalOutcome>;
  /** Re-checks a waiting call; undefined if another party always settles it. */
  readonly resume?: (input: string, context: LocalContext) => Promise<LocalOutcome>;
}

type Work<I extends z.ZodObject> = (input: z.infer<I>, context: LocalContext) => Promise<LocalOutcome> | LocalOutcome;

interface Definition<I extends z.ZodObject> extends Omit<
  ToolDescriptor,
  "inputSchema" | "timeoutMs" | "resource" | "examples"
> {
  input: I;
  /** One to three example calls; see the descriptor. */
  examples?: z.input<I>[];
  limits?: readonly string[];
  run: Work<I>;
  resume?: Work<I>;
}

const timeoutMs = 60_000;

/** Builds a local tool. Invalid arguments fail with the problem of each field and the valid names. */
export function localTool<I extends z.ZodObject>(definition: Definition<I>): LocalTool {
  const { input, run, resume, limits = [], ...descriptor } = definition;
  // The model can correct an unknown argument; if it were ignored, the model would not notice its mistake.
  const schema = input.strict();
  const { $schema: _, ...inputSchema } = z.toJSONSchema(schema, { io: "input" });
  const withInput = (work: Work<I>) => async (text: string, context: LocalContext) => {
    const parsed = text.trim() === "" ? {} : parseJson(text);
    const checked = schema.safeParse(parsed);
    if (checked.success) return work(input.parse(parsed), context);
    const problems = checked.error.issues.map((issue) => `${issue.path.join(".") || "arguments"}: ${issue.message}`);
    const names = Object.keys(schema.shape).join(", ");
    return {
      status: "failed" as const,
      content: `Invalid arguments for ${context.name}: ${problems.join("; ")}. Valid arguments: ${names}.`,
    };
  };
  return {
    descriptor: { ...descriptor, inputSchema, timeoutMs, resource: { kind: "none" } },
    limits,
    args: schema,
    run: withInput(run),
    ...(resume === undefined ? {} : { resume: withInput(resume) }),
  };
}
