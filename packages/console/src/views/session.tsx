// One session: its facts, what can be done with it, its files' checkpoints and its sub-agents.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { call, type Result } from "../api/http.ts";
import { go, href, route } from "../app/router.ts";
import { recentChanged } from "../chat/recent-state.ts";
import { visible } from "../chat/markdown.ts";
import { Subagents } from "../chat/subagents.tsx";
import { cacheShare, clock, compact, money, plural } from "../parts/format.ts";
import { Icon } from "../parts/icons.tsx";
import { WhenLoaded, useLoad } from "../parts/load.tsx";
import { runAction, toast } from "../parts/toast.tsx";
import { Fact } from "./cluster.tsx";

type Summary = Result<"sessionsGet">["session"];
type Rewind = Result<"checkpointsRewind">;

export function SessionView(): JSX.Element {
  const id = route.value.id ?? "main";
  const loaded = useLoad(async () => (await call<"sessionsGet">("GET", `/api/sessions/${id}`)).session, [id]);
  return (
    <div class="page">
      <WhenLoaded state={loaded}>
        {(session) => (
          <>
            <header class="page-head">
              <h1>
                <bdi>{session.title ?? session.key}</bdi>
              </h1>
              <a class="button primary" href={href("chat", session.sessionId)}>
                <Icon name="chat" /> Open
              </a>
            </header>
            <Actions session={session} changed={loaded.reload} />
            <Facts session={session} />
            <Checkpoints session={session} />
            <section>
              <h2>Sub-agents</h2>
              <Subagents parent={session.sessionId} none="This session has started none." />
            </section>
          </>
        )}
      </WhenLoaded>
    </div>
  );
}

function Actions({ session, changed }: { session: Summary; changed: () => Promise<void> }): JSX.Element {
  const path = `/api/sessions/${session.sessionId}`;
  const busy = useSignal(false);
  const change = async (body: object, done: string) => {
    await runAction(() => call<"sessionsChange">("PATCH", path, { body }), done);
    recentChanged();
    await changed();
  };
  const rename = (event: Event) => {
    event.preventDefault();
    const title = new FormData(event.currentTarget as HTMLFormElement).get("title");
    if (typeof title === "string" && title.trim() !== "") void change({ title: title.trim() }, "Renamed");
  };
  const fork = async () => {
    const body = { action: "fork", session: session.sessionId, route: `http:default:console-${crypto.randomUUID()}` };
    await runAction(async () => {
      const copy = await call<"sessionsOpen">("POST", "/api/sessions", { body });
      go("chat", copy.session.sessionId);
    }, "This is the copy; the original is kept");
  };
  const compactNow = async () => {
    busy.value = true;
    await runAction(async () => {
      const result = await call<"sessionsCompact">("POST", `${path}/compact`, { body: {} });
      if (result.outcome === "compacted")
        toast(`Compacted: ${compact(result.tokensBefore)} → ${compact(result.tokensAfter)} tokens`);
      else toast(result.outcome === "nothing" ? "There is nothing to compact yet" : "It is compacted after this turn");
    });
    busy.value = false;
    await changed();
  };
  const isArchived = session.status === "archived";
  return (
    <div class="row">
      <form class="row" onSubmit={rename}>
        <input name="title" type="text" aria-label="Title" defaultValue={session.title ?? ""} maxLength={200} />
        <button type="submit" class="button">
          <Icon name="edit" /> Rename
        </button>
      </form>
      <button
        type="button"
        class="button"
        onClick={() =>
          void change({ status: isArchived ? "active" : "archived" }, isArchived ? "Restored" : "Archived")
        }
      >
        <Icon name="archive" /> {isArchived ? "Restore" : "Archive"}
      </button>
      <button type="button" class="button" onClick={() => void fork()}>
        <Icon name="fork" /> Fork
      </button>
      <button type="button" class="button" disabled={busy} onClick={() => void compactNow()}>
        {busy.value ? <span class="spinner" /> : <Icon name="refresh" />} Compact
      </button>
    </div>
  );
}

function Facts({ session }: { session: Summary }): JSX.Element {
  const cached = cacheShare(session.usage);
  const rows: [string, string][] = [
    ["Key", session.key],
    ["Id", session.sessionId],
    ["Messages", String(session.messageCount)],
    ["Waiting messages", String(session.queued)],
    ["Cost, with sub-agents", money(session.treeCost)],
    [
      "Tokens in / out",
      `${compact(session.usage.inputTokens + session.usage.cacheReadTokens + session.usage.cacheWriteTokens)} / ${compact(session.usage.outputTokens)}`,
    ],
    ["From the provider's cache", cached === null ? "–" : `${Math.round(cached * 100)} %`],
    ["Created", clock(session.createdAt, new Date())],
    ["Last used", clock(session.updatedAt, new Date())],
    ...Object.entries(session.overrides).map(([name, value]): [string, string] => [
      `Override: ${name}`,
      JSON.stringify(value),
    ]),
  ];
  return (
    <dl class="facts">
      {rows.map(([name, value]) => (
        <Fact key={name} name={name} value={value} />
      ))}
    </dl>
  );
}

function Checkpoints({ session }: { session: Summary }): JSX.Element {
  const path = `/api/sessions/${session.sessionId}`;
  const loaded = useLoad(() => call<"checkpointsList">("GET", `${path}/checkpoints`), [path]);
  const preview = useSignal<{ checkpointId: string; report: Rewind } | undefined>(undefined);
  const rewind = (checkpointId: string, dryRun: boolean) =>
    runAction(
      async () => {
        const body = { checkpointId, dryRun };
        const key = crypto.randomUUID();
        const report = await call<"checkpointsRewind">("POST", `${path}/rewind`, { body, ...(dryRun ? {} : { key }) });
        preview.value = dryRun ? { checkpointId, report } : undefined;
        if (!dryRun) await loaded.reload();
      },
      dryRun ? undefined : "The files are restored; this can be undone by the newest checkpoint",
    );
  return (
    <section>
      <h2>Files that turns changed</h2>
      <WhenLoaded state={loaded}>
        {({ checkpoints }) =>
          checkpoints.length === 0 ? (
            <p class="muted">No turn of this session has changed a file.</p>
          ) : (
            <ul class="lines">
              {checkpoints.map(({ checkpointId, kind, at, text, files }) => (
                <li key={checkpointId}>
                  <div class="row">
                    <time class="muted" datetime={at}>
                      {clock(at, new Date())}
                    </time>
                    <bdi class="grow">{kind === "rewind" ? "Rewind" : visible(text)}</bdi>
                    <span class="muted">{plural(files, "file")}</span>
                    <button type="button" class="button" onClick={() => void rewind(checkpointId, true)}>
                      <Icon name="rewind" /> Preview rewind
                    </button>
                  </div>
                  {preview.value?.checkpointId === checkpointId && (
                    <Preview
                      report={preview.value.report}
                      confirm={() => void rewind(checkpointId, false)}
                      cancel={() => (preview.value = undefined)}
                    />
                  )}
                </li>
              ))}
            </ul>
          )
        }
      </WhenLoaded>
    </section>
  );
}

/** As the preview of `/rewind` says it. */
const previewedOutcomes: Readonly<Record<Rewind["files"][number]["outcome"], string>> = {
  restored: "will be restored",
  removed: "will be deleted",
  skipped: "will not change",
  failed: "cannot be restored",
};

function Preview(props: { report: Rewind; confirm: () => void; cancel: () => void }): JSX.Element {
  return (
    <div class="approval">
      <p class="approval-title">This would restore the state before the turn:</p>
      <ul>
        {props.report.files.map(({ path, outcome, reason }) => (
          <li key={path}>
            <span class="tag">{previewedOutcomes[outcome]}</span> <code>{visible(path)}</code> {reason}
          </li>
        ))}
        {props.report.omitted > 0 && <li>and {props.report.omitted} more</li>}
      </ul>
      <div class="row">
        <button type="button" class="button primary" onClick={props.confirm}>
          Rewind
        </button>
        <button type="button" class="button" onClick={props.cancel}>
          Cancel
        </button>
      </div>
    </div>
  );
}
