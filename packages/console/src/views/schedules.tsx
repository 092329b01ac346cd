// Jobs: the next runs, their history, and switching, running and deleting them.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { call, type Result } from "../api/http.ts";
import { href } from "../app/router.ts";
import { visible } from "../chat/markdown.ts";
import { clock, plural } from "../parts/format.ts";
import { Icon } from "../parts/icons.tsx";
import { EmptyState, WhenLoaded, useLoad } from "../parts/load.tsx";
import { runAction } from "../parts/toast.tsx";

type Job = Result<"schedulesList">["jobs"][number];

const everyMs = 15_000;

export function Schedules(): JSX.Element {
  const loaded = useLoad(() => call<"schedulesList">("GET", "/api/schedules", { query: { all: true } }), [], everyMs);
  const adding = useSignal(false);
  return (
    <div class="page">
      <header class="page-head">
        <h1>Schedules</h1>
        <button type="button" class="button primary" onClick={() => (adding.value = !adding.value)}>
          <Icon name="plus" /> New job
        </button>
      </header>
      {adding.value && (
        <NewJob
          done={() => {
            adding.value = false;
            void loaded.reload();
          }}
        />
      )}
      <WhenLoaded state={loaded}>
        {({ jobs }) =>
          jobs.length === 0 ? (
            <EmptyState icon="schedules" title="No jobs yet">
              <p>
                A job writes to the agent at given times. Create one here, ask the agent for it, or use{" "}
                <code>parley cron add</code>.
              </p>
            </EmptyState>
          ) : (
            <ul class="cards">
              {jobs.map((job) => (
                <JobCard key={job.id} job={job} changed={loaded.reload} />
              ))}
            </ul>
          )
        }
      </WhenLoaded>
    </div>
  );
}

function NewJob({ done }: { done: () => void }): JSX.Element {
  const submit = async (event: Event) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const body = { name: form.get("name"), schedule: form.get("schedule"), prompt: form.get("prompt") };
    const created = await runAction(
      () => call<"schedulesCreate">("POST", "/api/schedules", { body, key: crypto.randomUUID() }),
      "The job is created",
    );
    if (created) done();
  };
  return (
    <form class="card form" onSubmit={(event) => void submit(event)}>
      <label>
        Name
        <input name="name" type="text" required maxLength={120} />
      </label>
      <label>
        When
        <input name="schedule" type="text" required placeholder="every 1h · cron 0 8 * * 1-5 · at 2026-12-01T09:00" />
      </label>
      <label>
        Prompt
        <textarea name="prompt" required rows={3} />
      </label>
      <button type="submit" class="button primary">
        Create
      </button>
    </form>
  );
}

function JobCard({ job, changed }: { job: Job; changed: () => Promise<void> }): JSX.Element {
  const open = useSignal(false);
  const path = `/api/schedules/${encodeURIComponent(job.id)}`;
  const change = async (what: () => Promise<unknown>, done: string) => {
    await runAction(what, done);
    await changed();
  };
  const update = (body: object, done: string) =>
    change(() => call<"schedulesUpdate">("POST", `${path}/update`, { body, key: crypto.randomUUID() }), done);
  return (
    <li class="card" data-row tabIndex={-1}>
      <div class="row">
        <h2>
          <bdi>{visible(job.name)}</bdi>
        </h2>
        <span class={job.enabled ? "tag good" : "tag"}>{job.enabled ? "on" : "off"}</span>
        {job.tainted === true && <span class="tag warn">tainted</span>}
        <div class="row actions">
          <button
            type="button"
            class="button"
            onClick={() =>
              void change(
                () => call<"schedulesRun">("POST", `${path}/run`, { body: {}, key: crypto.randomUUID() }),
                "The job runs now",
              )
            }
          >
            Run now
          </button>
          <button
            type="button"
            class="button"
            onClick={() => void update({ enabled: !job.enabled }, job.enabled ? "Switched off" : "Switched on")}
          >
            {job.enabled ? "Switch off" : "Switch on"}
          </button>
          <button
            type="button"
            class="button danger"
            onClick={() => {
              if (window.confirm(`Delete the job "${job.name}" and its history?`))
                void change(() => call<"schedulesRemove">("POST", `${path}/remove`, { body: {} }), "Deleted");
            }}
          >
            Delete
          </button>
        </div>
      </div>
      <p>
        <code>{job.schedule}</code> <span class="muted">{job.timeZone}</span>
      </p>
      <p class="plain clip">{visible(job.prompt)}</p>
      <p class="muted">
        {job.nextDue === null ? "No further run" : `Next: ${clock(job.nextDue, new Date())}`} ·{" "}
        {plural(job.runs, "run")}
        {job.lastRun !== null && ` · last: ${job.lastRun.outcome}, ${clock(job.lastRun.at, new Date())}`}
      </p>
      <button type="button" class="link-button" aria-expanded={open.value} onClick={() => (open.value = !open.value)}>
        {open.value ? "Hide the history" : "History"}
      </button>
      {open.value && <History path={path} />}
    </li>
  );
}

function History({ path }: { path: string }): JSX.Element {
  const loaded = useLoad(() => call<"schedulesHistory">("GET", `${path}/history`), [path]);
  return (
    <WhenLoaded state={loaded}>
      {({ runs }) => (
        <ul class="lines">
          {runs.map((run) => (
            <li key={`${run.due}${run.at}`} class="row">
              <time class="muted" datetime={run.at}>
                {clock(run.at, new Date())}
              </time>
              <span class={run.outcome === "failed" ? "tag bad" : "tag"}>{run.outcome}</span>
              {run.turn !== null && <a href={href("turn", run.turn.turnId)}>{run.turn.exitReason ?? "running"}</a>}
              <span class="muted clip">{visible(run.reason ?? run.turn?.text ?? "")}</span>
            </li>
          ))}
          {runs.length === 0 && <li class="muted">It has not run yet.</li>}
        </ul>
      )}
    </WhenLoaded>
  );
}
