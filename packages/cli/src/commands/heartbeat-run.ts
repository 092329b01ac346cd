// `parley heartbeat run`: has the agent look after HEARTBEAT.md now.

import { Gateway } from "../cluster/gateway.ts";
import { findTarget } from "../cluster/target.ts";
import type { Run } from "../command-line/command.ts";
import { HeartbeatAnswer } from "../cron/answers.ts";
import { exitCodes } from "../exit-codes.ts";
import { print, printJson } from "../io.ts";

const words = {
  fired: "The agent looks after HEARTBEAT.md now.",
  empty:
    "HEARTBEAT.md asks for nothing: parley docs edit HEARTBEAT.md changes that. Lines that outsiders had a hand in do not count: parley docs vouch HEARTBEAT.md shows them and lets them in.",
  busy: "The agent is at work already; nothing was put in.",
} as const;

export const run: Run = async ({ values, io }) => {
  const answer = await new Gateway(findTarget(values, io)).post("/api/heartbeat", {}, HeartbeatAnswer);
  if (values.has("json")) printJson(io, answer);
  else print(io, words[answer.outcome]);
  return exitCodes.ok;
};
