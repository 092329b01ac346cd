// The definition of an operation: what a person or a program may ask of the gateway, as data. The gateway implements each definition
// once; slash commands, HTTP routes, control requests, MCP tools are projections of it, and commands of `parley` use its
// route.
import { z } from "zod";
import type { ApiScope, ContactRole } from "../principals.ts";

/** A route. Fields of the input that the path names are its parameters; the others are the query of a GET, else the JSON body. */
export interface HttpProjection {
  method: "GET" | "POST" | "PATCH" | "DELETE";
  /** For example `/api/approvals/:id`. */
  path: string;
  description?: string;
  /** What each status means. The lowest one is the status of a success, whose body is the output. */
  answers: Readonly<Record<number, string>>;
  /** What a repeated Idempotency-Key does; omitted: the route ignores the header. */
  key?: string;
  /** The route documents an empty JSON object as its body. */
  emptyBody?: true;
}

/** An argument of a slash command, in the order of the usage. */
export interface SlashArgument {
  /** The field of the input that gets the text. */
  field: string;
  /** The name in a usage error; omitted: the field. */
  label?: string;
  /** Takes the whole remaining text instead of one word. */
  rest?: true;
  optional?: true;
  /** The word itself is the argument, at any place; the field becomes true. */
  flag?: string;
}

/** One form of a slash command. */
export interface SlashProjection {
  /** The command, or the command and a subcommand: `/session`, `/session list`. */
  form: string;
  arguments?: readonly SlashArgument[];
  /** The fields that the form fills with its session; omitted: the field that the operation names. */
  session?: readonly string[];
  /** Fields that this form sets. */
  set?: Readonly<Record<string, unknown>>;
  /** The minimum role in a conversation with one person; omitted: the role of the operation. */
  direct?: ContactRole;
  /** The minimum role in a group; omitted: the role in a direct conversation. */
  group?: ContactRole;
  /** Additional checks, for readers of docs/commands.md. */
  condition?: string;
}

/** A control request over a WebSocket. */
export interface ControlProjection {
  subtype: string;
  /** The fields next to `subtype`; its output is the input of the operation without the session. */
  input: z.ZodType<Record<string, unknown>>;
  /** The fields of the output that the response has; omitted: all of them. */
  output?: readonly string[];
}

/** An MCP tool. */
export interface McpProjection {
  name: string;
  title: string;
  description: string;
  /** Its output is the input of the operation; omitted: the input of the operation. */
  input?: z.ZodType<Record<string, unknown>>;
  annotations: { readOnlyHint?: boolean; destructiveHint?: boolean; idempotentHint?: boolean; openWorldHint: boolean };
}

/** One operation. */
export interface OperationDefinition<I extends z.ZodType = z.ZodType, O extends z.ZodType = z.ZodType> {
  /** `<noun>.<verb>`, unique. */
  name: string;
  /** One line, for the documentation of the route. */
  summary?: string;
  /** The minimum role of a caller. Holders of the API token are the owner. */
  role: ContactRole;
  /** What a token of the API needs for it; omitted: `read` for a GET, else `admin`. */
  scope?: ApiScope;
  /**
   * The fields of the input that the audit log records; omitted: the operation is not recorded. Without a value of the last one the
   * operation changes nothing that is recorded.
   */
  audit?: readonly string[];
  input: I;
  output: O;
  /** The field of the input that names a session, by id or key. Slash commands and control requests fill it with their own session. */
  session?: string;
  http?: HttpProjection;
  slash?: readonly SlashProjection[];
  ws?: readonly ControlProjection[];
  mcp?: McpProjection;
}

export type OperationInput<D extends OperationDefinition> = z.output<D["input"]>;
export type OperationOutput<D extends OperationDefinition> = z.input<D["output"]>;

/** What a token of the API needs for an operation. */
export function scopeOf({ scope, http }: Pick<OperationDefinition, "scope" | "http">): ApiScope {
  return scope ?? (http?.method === "GET" ? "read" : "admin");
}

/** Defines an operation. */
export function operation<I extends z.ZodType, O extends z.ZodType>(
  definition: OperationDefinition<I, O>,
): OperationDefinition<I, O> {
  return definition;
}

/** Defines an operation that only slash commands use; its output is the text for the person. */
export function slashOperation<I extends z.ZodType>(
  definition: Omit<OperationDefinition<I, z.ZodString>, "output">,
): OperationDefinition<I, z.ZodString> {
  return { ...definition, output: z.string() };
}

/** A slash command for /help; its forms belong to operations. */
export interface SlashCommand {
  /** In lower case, including the slash. */
  name: string;
  /** The syntax, shown by /help and after a usage error. */
  usage: string;
  /** One line. */
  summary: string;
  /** Does not end a coalescing window, because the command is about the queued messages. */
  keepsWindow?: true;
}
