// `parley cron history`: the due times of a job and their outcomes.

import { Gateway } from "../cluster/gateway.ts";
import { findTarget } from "../cluster/target.ts";
import type { Run } from "../command-line/command.ts";
import { jobPath, RunsAnswer } from "../cron/answers.ts";
import { runsTable } from "../cron/text.ts";
import { exitCodes } from "../exit-codes.ts";
import { painter, print, printJson } from "../io.ts";

export const run: Run = async ({ values, positionals, io }) => {
  const path = jobPath(positionals, "/history?limit=200");
  const answer = await new Gateway(findTarget(values, io)).get(path, RunsAnswer);
  if (values.has("json")) printJson(io, answer);
  else if (answer.runs.length === 0) print(io, "The job has not been due yet.");
  else print(io, runsTable(answer.runs, painter(io.stdout, io.env)));
  return exitCodes.ok;
};
