// `parley heartbeat run`: starts a heartbeat now.

import { Gateway } from "../cluster/gateway.ts";
import { findTarget } from "../cluster/target.ts";
import type { Run } from "../command-line/command.ts";
import { HeartbeatAnswer } from "../cron/answers.ts";
import { exitCodes } from "../exit-codes.ts";
import { print, printJson } from "../io.ts";

const words = {
  fired: "Heartbeat started: the agent works through HEARTBEAT.md.",
  empty:
    "HEARTBEAT.md contains no tasks: edit it with parley docs edit HEARTBEAT.md. Untrusted lines are ignored: parley docs vouch HEARTBEAT.md shows them and marks them as trusted.",
  busy: "The agent is busy; no heartbeat was started.",
} as const;

export const run: Run = async ({ values, io }) => {
  const answer = await new Gateway(findTarget(values, io)).post("/api/heartbeat", {}, HeartbeatAnswer);
  if (values.has("json")) printJson(io, answer);
  else print(io, words[answer.outcome]);
  return exitCodes.ok;
};
