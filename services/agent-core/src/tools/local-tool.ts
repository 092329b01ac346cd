// A tool that agent-core carries out itself: it speaks for the agent or starts other agents, and touches no file, process or
// network.
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
import type { Policy } from "../turn/policy.ts";

export interface LocalContext {
  bus: Bus;
  log: Logger;
  epoch: number;
  storeTimeoutMs: number;
  settings: ParleySettings;
  policy: Policy;
  turn: ClaimedTurn;
  step: ToolStep;
  /** As the model is shown it: tells which of a tool's names it goes by. */
  name: string;
  /** The turn has read what nobody here vouches for. */
  tainted: boolean;
  /** Whose conversation it is: what is the owner's is for the owner alone. */
  audience: "owner" | "others";
  /** Tells those who watch. */
  say: (event: DurableEvent | LiveEvent) => void;
}

export type LocalOutcome =
  /** Settled in the store with this; what it sends goes out in the same commit. `untrusted`: the content taints the message with it. */
  | {
      status: "done" | "failed";
      content: string;
      outgoing?: Outgoing[];
      sent?: Attachment[];
      sleeps?: boolean;
      untrusted?: boolean;
    }
  /** The store has settled it in its own commit. */
  | { status: "settled"; result: ToolResult }
  /** Somebody else will settle it; `until` (ISO 8601) is when it is looked at again in any case. */
  | { status: "waiting"; until?: string };

export interface LocalTool {
  readonly descriptor: ToolDescriptor;
  /** Bounds of its arguments, work and result, a sentence each: for docs/tools.md. */
  readonly limits: readonly string[];
  /** What its arguments are checked with. */
  readonly args: z.ZodType;
  run(input: string, context: LocalContext): Promise<LocalOutcome>;
  /** Looks again at a call that was begun and waits; left out: whoever it waits for settles it. */
  readonly resume?: (input: string, context: LocalContext) => Promise<LocalOutcome>;
}

type Work<I extends z.ZodObject> = (input: z.infer<I>, context: LocalContext) => Promise<LocalOutcome> | LocalOutcome;

interface Definition<I extends z.ZodObject> extends Omit<
  ToolDescriptor,
  "inputSchema" | "timeoutMs" | "resource" | "examples"
> {
  input: I;
  /** One to three calls as they may be made; see the descriptor. */
  examples?: z.input<I>[];
  limits?: readonly string[];
  run: Work<I>;
  resume?: Work<I>;
}

const timeoutMs = 60_000;

/** Arguments that do not fit are answered with what is wrong, field by field, and the names there are. */
export function localTool<I extends z.ZodObject>(definition: Definition<I>): LocalTool {
  const { input, run, resume, limits = [], ...descriptor } = definition;
  // An argument nobody knows is a mistake that the model can mend; left out in silence it would not learn of it.
  const schema = input.strict();
  const { $schema: _, ...inputSchema } = z.toJSONSchema(schema, { io: "input" });
  const withInput = (work: Work<I>) => async (text: string, context: LocalContext) => {
    const said = parseJson(text);
    const checked = schema.safeParse(said);
    if (checked.success) return work(input.parse(said), context);
    const problems = checked.error.issues.map((issue) => `${issue.path.join(".") || "arguments"}: ${issue.message}`);
    const names = Object.keys(schema.shape).join(", ");
    return {
      status: "failed" as const,
      content: `Wrong arguments for ${context.name}: ${problems.join("; ")}. Its arguments are: ${names}.`,
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

function parseJson(text: string): unknown {
  try {
    return text.trim() === "" ? {} : JSON.parse(text);
  } catch {
    return undefined;
  }
}
