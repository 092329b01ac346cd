// What the commands about sessions have in common: the API at the target, and an answer as data or as text.

import { mainSession, ownConversation, ownPrefix } from "../chat/open.ts";
import { Gateway, Refused } from "../cluster/gateway.ts";
import { findTarget } from "../cluster/target.ts";
import type { Call, Run } from "../command-line/command.ts";
import { exitCodes } from "../exit-codes.ts";
import { painter, print, printJson, type Paint } from "../io.ts";
import { ControlApi } from "./api.ts";

/**
 * The name of the session that `parley chat` speaks in: its own conversation, where the policy gives it one, else the thread that the
 * owner's conversations share.
 */
export async function defaultSession(api: ControlApi): Promise<string> {
  const own = `${ownPrefix}${ownConversation}`;
  try {
    await api.session(own);
    return own;
  } catch (error) {
    if (error instanceof Refused && error.status === 404) return mainSession;
    throw error;
  }
}

export interface Shown {
  /** For --json. */
  readonly data: unknown;
  text(paint: Paint): string;
  /** What the command ends with; 0 by default. */
  readonly code?: number;
}

/** A command that asks the API once or twice and shows what came of it. */
export function asking(ask: (api: ControlApi, call: Call) => Promise<Shown>): Run {
  return async (call) => {
    const { values, io } = call;
    const shown = await ask(new ControlApi(new Gateway(findTarget(values, io))), call);
    if (values.has("json")) printJson(io, shown.data);
    else print(io, shown.text(painter(io.stdout, io.env)));
    return shown.code ?? exitCodes.ok;
  };
}
