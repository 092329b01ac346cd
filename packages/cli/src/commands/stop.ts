// `parley stop`: stops the running turn of a session.

import { Gateway } from "../cluster/gateway.ts";
import { CancelAnswer } from "../cluster/shapes.ts";
import { findTarget } from "../cluster/target.ts";
import { ControlApi } from "../control/api.ts";
import { defaultSession } from "../control/call.ts";
import type { Run } from "../command-line/command.ts";
import { exitCodes } from "../exit-codes.ts";
import { print, printJson } from "../io.ts";

export const run: Run = async ({ values, positionals, io }) => {
  const gateway = new Gateway(findTarget(values, io));
  const session = positionals[0] ?? (await defaultSession(new ControlApi(gateway)));
  const path = `/api/sessions/${encodeURIComponent(session)}/cancel`;
  const stopped = await gateway.post(path, { queued: !values.has("keep-waiting") }, CancelAnswer);
  const { turnId, cancelledQueued } = stopped;
  if (values.has("json")) printJson(io, stopped);
  else if (turnId === null && cancelledQueued === 0) print(io, "Nothing was running.");
  else {
    const taken =
      cancelledQueued === 0
        ? ""
        : ` ${cancelledQueued} queued ${cancelledQueued === 1 ? "message" : "messages"} cancelled.`;
    print(io, `${turnId === null ? "Nothing was running." : "Stopped."}${taken}`);
  }
  return exitCodes.ok;
};
