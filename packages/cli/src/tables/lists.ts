// Formats jobs, MCP servers, documents and pairing requests for people. Pure.

import type { DocumentMeta, Schedule, ScheduleRun, SkillProblem } from "@parley/contracts";
import { pluralize } from "@parley/kit";

import { asTyped } from "../io/command-name.ts";
import type { Answer, api } from "../cluster/api.ts";
import type { Paint } from "../io/io.ts";
import { duration, listing, localTime, oneLine } from "./format.ts";

/** `finished`: the number of finished jobs that the list leaves out. */
export function jobsTable(jobs: readonly Schedule[], paint: Paint, now: number, finished = 0): string {
  const hidden =
    finished === 0
      ? ""
      : `${pluralize(finished, "finished job is", "finished jobs are")} not listed; --all lists them.`;
  if (jobs.length === 0 && finished > 0) return `There are no jobs to come. ${hidden}`;
  if (jobs.length === 0)
    return asTyped("There are no jobs yet. Add one: parley cron add 'every 1h' 'look at the mail'");
  return (
    listing(
      jobs,
      {
        ID: ({ id }) => id,
        NAME: ({ name }) => oneLine(name, 30),
        SCHEDULE: ({ schedule, timeZone }) => oneLine(`${schedule.replace(/^cron /, "")} ${timeZone}`, 40),
        NEXT: (job) => nextText(job, now),
        THREAD: ({ target, route = target, person }) =>
          oneLine(person === undefined ? route : (person.name ?? person.contactId), 20),
        RUNS: ({ runs, maxRuns }) => (maxRuns === null ? runs : `${runs}/${maxRuns}`),
        LAST: ({ lastRun }) => (lastRun === null ? "-" : outcomeText(lastRun)),
      },
      paint,
    ) + (hidden === "" ? "" : `\n${hidden}`)
  );
}

/** Whether all runs of a job have ended: its only time has passed, or it had its number of runs. */
export function isFinished({ nextDue, schedule, lastDue, runs, maxRuns }: Schedule): boolean {
  if (nextDue !== null || lastDue === null) return false;
  return schedule.startsWith("at ") || (maxRuns !== null && runs >= maxRuns);
}

/** `2026-11-23 09:00 (in 7h)`, in the reader's own zone. */
export function nextText(job: Schedule, now: number): string {
  const { nextDue, enabled } = job;
  if (nextDue === null) return isFinished(job) ? "finished" : enabled ? "never" : "off";
  const seconds = (Date.parse(nextDue) - now) / 1_000;
  return `${localTime(nextDue)} (${seconds < 0 ? "now" : `in ${duration(seconds)}`})`;
}

export function runsTable(runs: readonly ScheduleRun[], paint: Paint): string {
  if (runs.length === 0) return "The job has not been due yet.";
  return listing(
    runs,
    {
      DUE: ({ due }) => localTime(due),
      OUTCOME: (run) => `${outcomeText(run)}${run.manual ? " (by hand)" : ""}`,
      ANSWER: ({ turn, reason }) => oneLine(turn?.text ?? reason ?? "", 80),
    },
    paint,
  );
}

function outcomeText({ outcome, state, turn }: ScheduleRun): string {
  if (outcome !== "fired" || state === null) return outcome;
  if (turn?.exitReason != null) return turn.exitReason;
  return state === "claimed" ? "running" : state;
}

type Server = Answer<typeof api.server>["server"];

export function serversTable(servers: readonly Server[], paint: Paint): string {
  if (servers.length === 0) return "There are no MCP servers. Add one in parley.toml: [mcp.servers.<name>]";
  return listing(
    servers,
    {
      SERVER: ({ server }) => server,
      STATE: ({ state }) => state,
      TOOLS: ({ tools }) => tools,
      HIDDEN: ({ switched }) => switched?.hidden.length ?? 0,
      WHAT: ({ problem, switched }) =>
        oneLine(
          problem ?? (switched?.on === false ? `off by ${switched.by} since ${localTime(switched.at)}` : ""),
          100,
        ),
    },
    paint,
  );
}

/** The skills, and below them a line for each problem. */
export function skillsTable({ skills, problems }: Answer<typeof api.skills>, paint: Paint): string {
  if (skills.length === 0 && problems.length === 0)
    return "There are no skills. Write skills/<name>/SKILL.md and upload it: parley docs push";
  const table = listing(
    skills,
    {
      SKILL: ({ name }) => name,
      STATE: ({ always, missing }) => (missing.length > 0 ? "unavailable" : always ? "always" : "ready"),
      WHAT: ({ description, missing }) =>
        oneLine(missing.length > 0 ? `requires ${missing.join(", ")}` : description, 100),
      DOCUMENT: ({ path }) => path,
    },
    paint,
  );
  return [...(skills.length === 0 ? [] : [table]), ...problems.map((each) => paint("yellow", problemLine(each)))].join(
    "\n",
  );
}

/** Why a skill is not loaded. */
export function problemLine({ path, reason }: SkillProblem): string {
  return `${path}: ${reason}`;
}

export function toolsTable({ server: { server, state }, tools }: Answer<typeof api.server>, paint: Paint): string {
  if (tools.length === 0) return `${server} has no tools now: it is ${state}.`;
  return listing(
    tools,
    {
      TOOL: ({ tool }) => tool,
      "NAME FOR THE AGENT": ({ name }) => name,
      "": ({ hidden }) => (hidden ? "hidden" : ""),
    },
    paint,
  );
}

export function switchedText(action: string, { server, tool, outcome }: Answer<typeof api.switchServer>): string {
  if (tool !== null) {
    if (outcome === "same") return `${tool} of ${server} is ${action === "off" ? "already hidden" : "not hidden"}.`;
    return `${tool} of ${server} is ${action === "off" ? "hidden" : "shown again"}.`;
  }
  if (action === "restart") return `${server} is restarting.`;
  return `${server} is ${outcome === "same" ? "already " : ""}${action}.`;
}

export function pairingsTable(pairings: Answer<typeof api.pairings>["pairings"], paint: Paint): string {
  if (pairings.length === 0) return "There are no open pairing requests.";
  const rows = listing(
    pairings,
    {
      CHANNEL: ({ channel }) => channel,
      ACCOUNT: ({ account }) => account,
      PERSON: ({ contactId }) => oneLine(contactId, 40),
      NAME: ({ name }) => (name === null ? "-" : oneLine(name, 40)),
      EXPIRES: ({ expiresAt }) => localTime(expiresAt),
    },
    paint,
  );
  return `${rows}\n\n${asTyped("Ask the person for their code, then run: parley pairing approve <code>")}`;
}

const versionColumns = {
  VERSION: ({ version }: DocumentMeta) => version,
  BYTES: ({ deleted, bytes }: DocumentMeta) => (deleted ? "removed" : bytes),
  AUTHOR: ({ author, restoredFrom }: DocumentMeta) =>
    restoredFrom === null ? author : `${author} (restored ${restoredFrom})`,
  CHANGED: ({ createdAt }: DocumentMeta) => localTime(createdAt),
};

export function documentsTable(documents: readonly DocumentMeta[], paint: Paint): string {
  if (documents.length === 0) return asTyped("There are no documents yet. Create one: parley docs edit MEMORY.md");
  return listing(documents, { PATH: ({ path }) => oneLine(path, 80), ...versionColumns }, paint);
}

export function historyTable(versions: readonly DocumentMeta[], paint: Paint): string {
  return listing(versions, { ...versionColumns, TURN: ({ turnId }) => turnId ?? "" }, paint);
}
