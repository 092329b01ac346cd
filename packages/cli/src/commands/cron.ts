// The commands `parley cron …` and `parley heartbeat …`.

import { exampleAddress, type Schedule } from "@parley/contracts";

import { api } from "../cluster/api.ts";
import { UsageError, type Paint } from "../io/io.ts";
import { flag, text } from "../io/options.ts";
import { isFinished, jobsTable, nextText, runsTable } from "../tables/lists.ts";
import { operand, request, type CommandSpec } from "./command.ts";

const heartbeatTexts = {
  fired: "Heartbeat started: the agent works through HEARTBEAT.md.",
  empty:
    "HEARTBEAT.md contains no tasks: edit it with parley docs edit HEARTBEAT.md. Untrusted lines are ignored: parley docs vouch HEARTBEAT.md shows them and marks them as trusted.",
  busy: "The agent is busy; no heartbeat was started.",
} as const;

const operands = ["<id or name>"];

function jobOf(positionals: readonly string[]): string {
  return operand(positionals, "Name a job; parley cron list shows them.");
}

function addressOf(given: string | undefined) {
  if (given === undefined || given === "nowhere") return given;
  const [channel = "", account = "", ...rest] = given.split(":");
  const conversation = rest.join(":");
  if (channel !== "" && account !== "" && conversation !== "") return { channel, account, conversation };
  throw new UsageError(
    `--deliver: "${given}" is not an address. Write <channel>:<account>:<chat>, such as ${exampleAddress}, or nowhere.`,
  );
}

export const cronCommands: readonly CommandSpec[] = [
  request(
    {
      name: "cron list",
      summary: "list scheduled jobs and their next due times",
      options: { active: flag("only jobs that will run again"), all: flag("also finished jobs") },
      examples: ["parley cron list"],
    },
    async (gateway, { values }) => {
      const jobs: Schedule[] = [];
      for (let more = true; more;) {
        const page = await gateway.run(api.jobs, { all: !values.has("active"), after: jobs.at(-1)?.id });
        jobs.push(...page.jobs);
        more = page.more;
      }
      const shown = values.has("all") ? jobs : jobs.filter((job) => !isFinished(job));
      const text = (paint: Paint) => jobsTable(shown, paint, Date.now(), jobs.length - shown.length);
      return { data: { jobs }, text };
    },
  ),
  request(
    {
      name: "cron add",
      summary: "add a job that sends the agent a prompt once or repeatedly",
      operands: ["<schedule>", "<prompt>"],
      details: `A schedule is "at 2030-05-01T09:00", "at +20m", "every 30m", "every 1h30m" or a cron pattern of five or six fields
(minute hour day month weekday, optionally preceded by seconds). Without --target, the prompt goes to the owner's thread
if there is one. Without --deliver, the answer goes to where the owner last wrote.`,
      options: {
        name: text("<words>", "name of the job"),
        zone: text("<zone>", "IANA time zone such as Europe/Berlin; default: the agent's"),
        target: text("<thread>", "main (the owner's thread) or own (a separate thread)", ["main", "own"]),
        profile: text("<name>", "profile that answers, in a separate thread"),
        deliver: text("<address>", "address of the answer, channel:account:conversation, or nowhere"),
        overlap: text("<what>", "if the previous run is still active: skip (default) or queue", ["skip", "queue"]),
        missed: text("<what>", "for due times missed while Parley was down: run_once (default) or skip", [
          "run_once",
          "skip",
        ]),
        "max-runs": text("<n>", "end the job after this many runs"),
        "delete-after": flag("delete the job when it has ended"),
      },
      examples: [
        "parley cron add '0 9 * * 1-5' 'say good morning and what is in my calendar' --zone Europe/Berlin",
        "parley cron add 'at +20m' 'remind me of the tea'",
      ],
    },
    async (gateway, { values, positionals: [schedule, prompt] }) => {
      if (schedule === undefined || prompt === undefined || prompt.trim() === "")
        throw new UsageError("A job needs a schedule and a prompt: parley cron add 'every 1h' 'look at the mail'.");
      const { job } = await gateway.run(api.addJob, {
        schedule,
        prompt,
        name: values.text("name"),
        timeZone: values.text("zone"),
        target: values.text("target"),
        profile: values.text("profile"),
        deliverTo: addressOf(values.text("deliver")),
        overlap: values.text("overlap"),
        missed: values.text("missed"),
        maxRuns: values.number("max-runs", "a number of 1 or more"),
        afterRun: values.has("delete-after") ? "delete" : undefined,
      });
      const next = nextText(job, Date.now());
      return { data: { job }, text: () => `${job.id}: ${job.schedule} (${job.timeZone}), next ${next}` };
    },
  ),
  request(
    {
      name: "cron remove",
      summary: "delete a job and its history",
      operands,
      examples: ["parley cron remove morning"],
    },
    async (gateway, { positionals }) => {
      const { job } = await gateway.run(api.removeJob, { id: jobOf(positionals) });
      return { data: { job }, text: () => `Removed ${job.id} "${job.name}".` };
    },
  ),
  request(
    {
      name: "cron pause",
      summary: "pause a job, or resume it with --off",
      operands,
      options: { off: flag("resume the job; its schedule counts from now") },
      examples: ["parley cron pause morning", "parley cron pause morning --off"],
    },
    async (gateway, { values, positionals }) => {
      const enabled = values.has("off");
      const { job } = await gateway.run(api.updateJob, { id: jobOf(positionals), enabled });
      const state = enabled ? `is resumed, next ${nextText(job, Date.now())}` : "is paused";
      return { data: { job }, text: () => `${job.id} ${state}.` };
    },
  ),
  request(
    {
      name: "cron run",
      summary: "run a job now, in addition to its schedule",
      operands,
      examples: ["parley cron run morning"],
    },
    async (gateway, { positionals }) => {
      const answer = await gateway.run(api.runJob, { id: jobOf(positionals) });
      const { id } = answer.job;
      return { data: answer, text: () => `${id} is queued; parley cron history ${id} shows the outcome.` };
    },
  ),
  request(
    {
      name: "cron history",
      summary: "show the due times of a job and their outcomes, newest first",
      operands,
      examples: ["parley cron history morning"],
    },
    async (gateway, { positionals }) => {
      const answer = await gateway.run(api.jobHistory, { id: jobOf(positionals), limit: 200 });
      return { data: answer, text: (paint) => runsTable(answer.runs, paint) };
    },
  ),
  request(
    {
      name: "heartbeat run",
      summary: "start a heartbeat now: the agent works through HEARTBEAT.md",
      examples: ["parley heartbeat run"],
    },
    async (gateway) => {
      const answer = await gateway.run(api.heartbeat);
      return { data: answer, text: () => heartbeatTexts[answer.outcome] };
    },
  ),
];
