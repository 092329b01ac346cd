// What a command is, and the common part of the commands that send requests to the gateway.

import { mainSession, ownConversation, ownPrefix } from "../chat/open.ts";
import { api } from "../cluster/api.ts";
import { Gateway, RequestRejectedError } from "../cluster/gateway.ts";
import { findTarget } from "../cluster/target.ts";
import { exitCodes, painter, print, printJson, terminalWidth, UsageError, type Io, type Paint } from "../io/io.ts";
import { jsonOption, targetOptions, text, type OptionTable, type OptionValues } from "../io/options.ts";

export interface Call {
  readonly values: OptionValues;
  /** The operands; for a command that passes them through, everything after its name. */
  readonly positionals: readonly string[];
  readonly io: Io;
}

export type Run = (call: Call) => Promise<number>;

export interface CommandSpec {
  /** One word, or two: `pairing approve`. */
  readonly name: string;
  readonly summary: string;
  /** Operands after the name and the options: `<code>`, `[<file>]`. */
  readonly operands?: readonly string[];
  readonly options: OptionTable;
  /** Further help text, as whole lines. */
  readonly details?: string;
  readonly examples: readonly string[];
  /** Everything after the name, including --help, is passed to another program. */
  readonly passThrough?: boolean;
  readonly run: Run;
}

/** The result of a request. */
export interface Result {
  /** For --json. */
  readonly data: unknown;
  /** `maxWidth`: columns of the terminal; Infinity in a pipe. */
  text(paint: Paint, maxWidth: number): string;
  /** The exit code; default 0. */
  readonly code?: number;
}

/** A command that sends requests and prints their result as JSON or text. */
export function request(
  spec: Omit<CommandSpec, "options" | "run"> & { options?: OptionTable },
  ask: (gateway: Gateway, call: Call) => Promise<Result>,
): CommandSpec {
  const run: Run = async (call) => {
    const { values, io } = call;
    const result = await ask(new Gateway(findTarget(values, io)), call);
    if (values.has("json")) printJson(io, result.data);
    else print(io, result.text(painter(io.stdout, io.env), terminalWidth(io.stdout)));
    return result.code ?? exitCodes.ok;
  };
  return { ...spec, options: { ...targetOptions, ...jsonOption, ...spec.options }, run };
}

/** The first operand. Throws UsageError with the hint if it is missing. */
export function operand([first]: readonly string[], hint: string): string {
  if (first === undefined || first === "") throw new UsageError(hint);
  return first;
}

export const sessionOption: OptionTable = {
  session: text("<id>", "a session, by id or key; default: that of `parley chat`"),
};

/** The given session, or the one of `parley chat`: that of its conversation if the policy created one, otherwise the thread that the owner shares. */
export async function sessionOrDefault(given: string | undefined, gateway: Gateway): Promise<string> {
  if (given !== undefined) return given;
  const own = `${ownPrefix}${ownConversation}`;
  try {
    await gateway.run(api.session, { id: own });
    return own;
  } catch (error) {
    if (error instanceof RequestRejectedError && error.status === 404) return mainSession;
    throw error;
  }
}
