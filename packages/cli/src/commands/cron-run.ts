// `parley cron run`: runs a job now, in addition to its schedule.

import { Gateway } from "../cluster/gateway.ts";
import { findTarget } from "../cluster/target.ts";
import type { Run } from "../command-line/command.ts";
import { jobPath, RunAnswer } from "../cron/answers.ts";
import { exitCodes } from "../exit-codes.ts";
import { print, printJson } from "../io.ts";

export const run: Run = async ({ values, positionals, io }) => {
  const path = jobPath(positionals, "/run");
  const answer = await new Gateway(findTarget(values, io)).post(path, {}, RunAnswer);
  if (values.has("json")) printJson(io, answer);
  else print(io, `${answer.job.id} is queued; parley cron history ${answer.job.id} shows the outcome.`);
  return exitCodes.ok;
};
