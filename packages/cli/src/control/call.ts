// The common part of the session commands: connect to the API, print the result as JSON or text.

import { mainSession, ownConversation, ownPrefix } from "../chat/open.ts";
import { Gateway, RequestRejectedError } from "../cluster/gateway.ts";
import { findTarget } from "../cluster/target.ts";
import type { Call, Run } from "../command-line/command.ts";
import { exitCodes } from "../exit-codes.ts";
import { painter, print, printJson, type Paint } from "../io.ts";
import { ControlApi } from "./api.ts";

/** The session of `parley chat`: that of its own conversation if the policy created one, otherwise the owner's shared thread. */
export async function defaultSession(api: ControlApi): Promise<string> {
  const own = `${ownPrefix}${ownConversation}`;
  try {
    await api.session(own);
    return own;
  } catch (error) {
    if (error instanceof RequestRejectedError && error.status === 404) return mainSession;
    throw error;
  }
}

export interface Shown {
  /** For --json. */
  readonly data: unknown;
  text(paint: Paint): string;
  /** The exit code; default 0. */
  readonly code?: number;
}

/** Builds a command that sends API requests and prints their result. */
export function asking(ask: (api: ControlApi, call: Call) => Promise<Shown>): Run {
  return async (call) => {
    const { values, io } = call;
    const shown = await ask(new ControlApi(new Gateway(findTarget(values, io))), call);
    if (values.has("json")) printJson(io, shown.data);
    else print(io, shown.text(painter(io.stdout, io.env)));
    return shown.code ?? exitCodes.ok;
  };
}
