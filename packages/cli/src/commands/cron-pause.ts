// `parley cron pause`: pauses a job or resumes it.

import { Gateway } from "../cluster/gateway.ts";
import { findTarget } from "../cluster/target.ts";
import type { Run } from "../command-line/command.ts";
import { JobAnswer, jobPath } from "../cron/answers.ts";
import { nextText } from "../cron/text.ts";
import { exitCodes } from "../exit-codes.ts";
import { print, printJson } from "../io.ts";

export const run: Run = async ({ values, positionals, io }) => {
  const enabled = values.has("off");
  const path = jobPath(positionals, "/update");
  const { job } = await new Gateway(findTarget(values, io)).post(path, { enabled }, JobAnswer);
  if (values.has("json")) printJson(io, { job });
  else print(io, enabled ? `${job.id} is resumed, next ${nextText(job, Date.now())}.` : `${job.id} is paused.`);
  return exitCodes.ok;
};
