// `parley cron remove`: deletes a job and its history.

import { Gateway } from "../cluster/gateway.ts";
import { findTarget } from "../cluster/target.ts";
import type { Run } from "../command-line/command.ts";
import { JobAnswer, jobPath } from "../cron/answers.ts";
import { exitCodes } from "../exit-codes.ts";
import { print, printJson } from "../io.ts";

export const run: Run = async ({ values, positionals, io }) => {
  const path = jobPath(positionals, "/remove");
  const { job } = await new Gateway(findTarget(values, io)).post(path, {}, JobAnswer);
  if (values.has("json")) printJson(io, { job });
  else print(io, `Removed ${job.id} "${job.name}".`);
  return exitCodes.ok;
};
