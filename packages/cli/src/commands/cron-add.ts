// `parley cron add`: creates a job that sends the agent a prompt once or repeatedly.

import { Gateway } from "../cluster/gateway.ts";
import { findTarget } from "../cluster/target.ts";
import type { Run } from "../command-line/command.ts";
import type { OptionValues } from "../command-line/options.ts";
import { JobAnswer } from "../cron/answers.ts";
import { nextText } from "../cron/text.ts";
import { UsageError } from "../errors.ts";
import { exitCodes } from "../exit-codes.ts";
import { print, printJson } from "../io.ts";

export const run: Run = async ({ values, positionals, io }) => {
  const [schedule, prompt] = positionals;
  if (schedule === undefined || prompt === undefined || prompt.trim() === "") {
    throw new UsageError("A job needs a schedule and a prompt: parley cron add 'every 1h' 'look at the mail'.");
  }
  const wanted = {
    schedule,
    prompt,
    name: values.text("name"),
    timeZone: values.text("zone"),
    target: values.text("target"),
    deliverTo: addressOf(values.text("deliver")),
    overlap: values.text("overlap"),
    missed: values.text("missed"),
    maxRuns: countOf(values),
    afterRun: values.has("delete-after") ? "delete" : undefined,
  };
  const { job } = await new Gateway(findTarget(values, io)).post("/api/schedules", wanted, JobAnswer);
  if (values.has("json")) printJson(io, { job });
  else print(io, `${job.id}: ${job.schedule} (${job.timeZone}), next ${nextText(job, Date.now())}`);
  return exitCodes.ok;
};

function addressOf(text: string | undefined) {
  if (text === undefined || text === "nowhere") return text;
  const [channel = "", account = "", ...rest] = text.split(":");
  const conversation = rest.join(":");
  if (channel === "" || account === "" || conversation === "") {
    throw new UsageError(
      `--deliver: "${text}" is not an address. Write <channel>:<account>:<chat>, such as telegram:default:12345, or nowhere.`,
    );
  }
  return { channel, account, conversation };
}

function countOf(values: OptionValues): number | undefined {
  const text = values.text("max-runs");
  if (text === undefined) return undefined;
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new UsageError(`--max-runs: "${text}" is not a number of 1 or more.`);
  return Number(text);
}
