// The commands `parley cron …` and `parley heartbeat …`.

import type { CommandSpec } from "../command-line/command.ts";
import { jsonOption, targetOptions } from "../command-line/options.ts";

const target = { ...targetOptions, ...jsonOption } as const;
const operands = { operands: "<id or name>", maxOperands: 1 } as const;

export const cronCommands: readonly CommandSpec[] = [
  {
    name: "cron list",
    summary: "list scheduled jobs and their next due times",
    options: { ...target, active: { type: "boolean", about: "only jobs that will run again" } },
    examples: ["parley cron list"],
    load: async () => (await import("../commands/cron-list.ts")).run,
  },
  {
    name: "cron add",
    summary: "add a job that sends the agent a prompt once or repeatedly",
    operands: "<schedule> <prompt>",
    maxOperands: 2,
    details: `A schedule is "at 2030-05-01T09:00", "at +20m", "every 30m", "every 1h30m" or a cron pattern of five or six fields
(minute hour day month weekday, optionally preceded by seconds). Without --target, the prompt goes to the owner's thread
if there is one. Without --deliver, the answer goes to where the owner last wrote.`,
    options: {
      ...target,
      name: { type: "string", value: "<words>", about: "name of the job" },
      zone: { type: "string", value: "<zone>", about: "IANA time zone such as Europe/Berlin; default: the agent's" },
      target: {
        type: "string",
        value: "<thread>",
        about: "main (the owner's thread) or own (a separate thread)",
        choices: ["main", "own"],
      },
      deliver: {
        type: "string",
        value: "<address>",
        about: "address of the answer, channel:account:conversation, or nowhere",
      },
      overlap: {
        type: "string",
        value: "<what>",
        about: "if the previous run is still active: skip (default) or queue",
        choices: ["skip", "queue"],
      },
      missed: {
        type: "string",
        value: "<what>",
        about: "for due times missed while Parley was down: run_once (default) or skip",
        choices: ["run_once", "skip"],
      },
      "max-runs": { type: "string", value: "<n>", about: "end the job after this many runs" },
      "delete-after": { type: "boolean", about: "delete the job when it has ended" },
    },
    examples: [
      "parley cron add '0 9 * * 1-5' 'say good morning and what is in my calendar' --zone Europe/Berlin",
      "parley cron add 'at +20m' 'remind me of the tea'",
    ],
    load: async () => (await import("../commands/cron-add.ts")).run,
  },
  {
    name: "cron remove",
    summary: "delete a job and its history",
    ...operands,
    options: target,
    examples: ["parley cron remove morning"],
    load: async () => (await import("../commands/cron-remove.ts")).run,
  },
  {
    name: "cron pause",
    summary: "pause a job, or resume it with --off",
    ...operands,
    options: { ...target, off: { type: "boolean", about: "resume the job; its schedule counts from now" } },
    examples: ["parley cron pause morning", "parley cron pause morning --off"],
    load: async () => (await import("../commands/cron-pause.ts")).run,
  },
  {
    name: "cron run",
    summary: "run a job now, in addition to its schedule",
    ...operands,
    options: target,
    examples: ["parley cron run morning"],
    load: async () => (await import("../commands/cron-run.ts")).run,
  },
  {
    name: "cron history",
    summary: "show the due times of a job and their outcomes, newest first",
    ...operands,
    options: target,
    examples: ["parley cron history morning"],
    load: async () => (await import("../commands/cron-history.ts")).run,
  },
  {
    name: "heartbeat run",
    summary: "start a heartbeat now: the agent works through HEARTBEAT.md",
    options: target,
    examples: ["parley heartbeat run"],
    load: async () => (await import("../commands/heartbeat-run.ts")).run,
  },
];
