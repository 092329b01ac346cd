// The commands `parley cron …` and `parley heartbeat …`.

import type { CommandSpec } from "../command-line/command.ts";
import { jsonOption, targetOptions } from "../command-line/options.ts";

const target = { ...targetOptions, ...jsonOption } as const;
const operands = { operands: "<id or name>", maxOperands: 1 } as const;

export const cronCommands: readonly CommandSpec[] = [
  {
    name: "cron list",
    summary: "jobs in time, and when each is due next",
    options: { ...target, active: { type: "boolean", about: "only those that will run again" } },
    examples: ["parley cron list"],
    load: async () => (await import("../commands/cron-list.ts")).run,
  },
  {
    name: "cron add",
    summary: "have the agent told something at a time, or again and again",
    operands: "<schedule> <prompt>",
    maxOperands: 2,
    details: `A schedule is "at 2030-05-01T09:00", "at +20m", "every 30m", "every 1h30m" or a cron pattern of five or six fields
(minute hour day month weekday, seconds before them). Without --target it goes into the owner's thread where there
is one. Without --deliver its answer goes where the owner has written last.`,
    options: {
      ...target,
      name: { type: "string", value: "<words>", about: "what it is called" },
      zone: { type: "string", value: "<zone>", about: "IANA time zone, as Europe/Berlin; the agent's by default" },
      target: {
        type: "string",
        value: "<thread>",
        about: "main, the owner's, or one of its own",
        choices: ["main", "own"],
      },
      deliver: {
        type: "string",
        value: "<address>",
        about: "channel:account:conversation the answer goes to, or nowhere",
      },
      overlap: {
        type: "string",
        value: "<what>",
        about: "while the run before still works: skip (default) or queue",
        choices: ["skip", "queue"],
      },
      missed: {
        type: "string",
        value: "<what>",
        about: "times nobody was there for: run_once (default) or skip",
        choices: ["run_once", "skip"],
      },
      "max-runs": { type: "string", value: "<n>", about: "it ends after so many" },
      "delete-after": { type: "boolean", about: "forget it when it is over" },
    },
    examples: [
      "parley cron add '0 9 * * 1-5' 'say good morning and what is in my calendar' --zone Europe/Berlin",
      "parley cron add 'at +20m' 'remind me of the tea'",
    ],
    load: async () => (await import("../commands/cron-add.ts")).run,
  },
  {
    name: "cron remove",
    summary: "forget a job and its history",
    ...operands,
    options: target,
    examples: ["parley cron remove morning"],
    load: async () => (await import("../commands/cron-remove.ts")).run,
  },
  {
    name: "cron pause",
    summary: "keep a job from running, or with --off let it run again",
    ...operands,
    options: { ...target, off: { type: "boolean", about: "end the pause; its schedule counts from now" } },
    examples: ["parley cron pause morning", "parley cron pause morning --off"],
    load: async () => (await import("../commands/cron-pause.ts")).run,
  },
  {
    name: "cron run",
    summary: "run a job now, beside its schedule",
    ...operands,
    options: target,
    examples: ["parley cron run morning"],
    load: async () => (await import("../commands/cron-run.ts")).run,
  },
  {
    name: "cron history",
    summary: "the due times of a job and what became of them, newest first",
    ...operands,
    options: target,
    examples: ["parley cron history morning"],
    load: async () => (await import("../commands/cron-history.ts")).run,
  },
  {
    name: "heartbeat run",
    summary: "have the agent look after HEARTBEAT.md now",
    options: target,
    examples: ["parley heartbeat run"],
    load: async () => (await import("../commands/heartbeat-run.ts")).run,
  },
];
