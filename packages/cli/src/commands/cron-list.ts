// `parley cron list`: scheduled jobs and their next due times.

import type { Schedule } from "@parley/contracts";

import { Gateway } from "../cluster/gateway.ts";
import { findTarget } from "../cluster/target.ts";
import type { Run } from "../command-line/command.ts";
import { JobsAnswer } from "../cron/answers.ts";
import { jobsTable } from "../cron/text.ts";
import { exitCodes } from "../exit-codes.ts";
import { painter, print, printJson } from "../io.ts";

export const run: Run = async ({ values, io }) => {
  const gateway = new Gateway(findTarget(values, io));
  const jobs: Schedule[] = [];
  for (let after: string | undefined; ;) {
    const query = new URLSearchParams({
      all: String(!values.has("active")),
      ...(after === undefined ? {} : { after }),
    });
    const page = await gateway.get(`/api/schedules?${query.toString()}`, JobsAnswer);
    jobs.push(...page.jobs);
    after = page.jobs.at(-1)?.id;
    if (!page.more) break;
  }
  if (values.has("json")) printJson(io, { jobs });
  else print(io, jobsTable(jobs, painter(io.stdout, io.env), Date.now()));
  return exitCodes.ok;
};
