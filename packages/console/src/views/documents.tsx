// Documents and memory: the texts that define the agent and what it remembers, with versions, differences and restoring.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useLayoutEffect, useMemo } from "preact/hooks";
import { call, type Result } from "../api/http.ts";
import { href, route } from "../app/router.ts";
import { documentDraft, readDraft, writeDraft } from "../chat/drafts.ts";
import { Markdown } from "../chat/text.tsx";
import { DiffView } from "../parts/diff-view.tsx";
import { age, bytes, clock } from "../parts/format.ts";
import { Icon } from "../parts/icons.tsx";
import { EmptyState, WhenLoaded, useLoad } from "../parts/load.tsx";
import { runAction } from "../parts/toast.tsx";

type Shown = Result<"documentsGet">["document"];

export function Documents(): JSX.Element {
  const path = route.value.id;
  const loaded = useLoad(() => call<"documentsList">("GET", "/api/documents"), [path]);
  return (
    <div class="page">
      <header class="page-head">
        <h1>Memory and documents</h1>
      </header>
      <div class={path === null ? "split" : "split has-detail"}>
        <nav class="split-list" aria-label="Documents">
          <WhenLoaded state={loaded}>
            {({ documents }) =>
              documents.length === 0 ? (
                <EmptyState icon="documents" title="No documents yet">
                  <p>
                    The agent writes notes below <code>memory/</code>. Write <code>AGENTS.md</code> to instruct it:{" "}
                    <code>parley docs edit AGENTS.md</code>.
                  </p>
                </EmptyState>
              ) : (
                <ul class="lines">
                  {documents.map((each) => (
                    <li key={each.path}>
                      <a
                        data-row
                        href={href("documents", each.path)}
                        aria-current={each.path === path ? "page" : undefined}
                      >
                        <bdi>{each.path}</bdi>
                        <span class="muted">
                          {" "}
                          {bytes(each.bytes)} · {age(each.createdAt, Date.now())}
                        </span>
                        {each.author === "untrusted" && <span class="tag warn">untrusted</span>}
                      </a>
                    </li>
                  ))}
                </ul>
              )
            }
          </WhenLoaded>
        </nav>
        {path !== null && <Document key={path} path={path} />}
      </div>
    </div>
  );
}

function Document({ path }: { path: string }): JSX.Element {
  const loaded = useLoad(
    async () => (await call<"documentsGet">("GET", "/api/documents/content", { query: { path } })).document,
    [path],
  );
  const view = useSignal<"text" | "edit" | "history">("text");
  return (
    <article class="split-detail">
      <WhenLoaded state={loaded}>
        {(document) => (
          <>
            <header class="page-head">
              <h2>
                <bdi>{document.path}</bdi>
              </h2>
              <span class="muted">
                version {document.version}, {document.author}
              </span>
              <div class="row">
                {(["text", "edit", "history"] as const).map((each) => (
                  <button
                    key={each}
                    type="button"
                    class="button"
                    aria-pressed={view.value === each}
                    onClick={() => (view.value = each)}
                  >
                    {{ text: "Text", edit: "Edit", history: "History" }[each]}
                  </button>
                ))}
              </div>
            </header>
            {view.value === "text" && <Markdown text={document.content} />}
            {view.value === "edit" && (
              <Edit
                document={document}
                saved={async () => {
                  await loaded.reload();
                  view.value = "text";
                }}
              />
            )}
            {view.value === "history" && <History document={document} restored={loaded.reload} />}
          </>
        )}
      </WhenLoaded>
    </article>
  );
}

function Edit({ document, saved }: { document: Shown; saved: () => Promise<void> }): JSX.Element {
  const draft = documentDraft(document.path);
  const kept = useMemo(() => readDraft(draft).text, [draft]);
  const content = useSignal(kept === "" ? document.content : kept);
  const isChanged = content.value !== document.content;
  // Before the next event, which may leave the view.
  useLayoutEffect(
    () => writeDraft(draft, { text: isChanged ? content.value : "", files: [] }),
    [draft, content.value, isChanged],
  );
  const save = async (event: Event) => {
    event.preventDefault();
    const body = { path: document.path, content: content.value, expectedVersion: document.version };
    const key = crypto.randomUUID();
    if (!(await runAction(() => call<"documentsPut">("POST", "/api/documents/put", { body, key }), "Saved"))) return;
    writeDraft(draft, { text: "", files: [] });
    await saved();
  };
  return (
    <form class="form" onSubmit={(event) => void save(event)}>
      <textarea
        class="editor"
        aria-label={`Text of ${document.path}`}
        rows={20}
        value={content.value}
        onInput={(event) => (content.value = event.currentTarget.value)}
      />
      {isChanged && <DiffView before={document.content} after={content.value} />}
      <div class="row">
        <button type="submit" class="button primary" disabled={!isChanged}>
          Save as a new version
        </button>
        {isChanged && (
          <button type="button" class="button" onClick={() => (content.value = document.content)}>
            Discard the changes
          </button>
        )}
      </div>
    </form>
  );
}

function History({ document, restored }: { document: Shown; restored: () => Promise<void> }): JSX.Element {
  const { path, version: newest } = document;
  const loaded = useLoad(
    () => call<"documentsHistory">("GET", "/api/documents/history", { query: { path } }),
    [path, newest],
  );
  const compared = useSignal<number | undefined>(undefined);
  const restore = async (version: number) => {
    const body = { path, version, expectedVersion: newest };
    const key = crypto.randomUUID();
    await runAction(() => call<"documentsRestore">("POST", "/api/documents/restore", { body, key }), "Restored");
    await restored();
  };
  return (
    <WhenLoaded state={loaded}>
      {({ versions }) => (
        <ul class="lines">
          {versions.map(({ version, author, createdAt: at, turnId, deleted }) => (
            <li key={version}>
              <div class="row">
                <strong>{version}</strong>
                <span class={author === "untrusted" ? "tag warn" : "tag"}>{deleted ? "removed" : author}</span>
                <time class="muted" datetime={at}>
                  {clock(at, new Date())}
                </time>
                {turnId !== null && <a href={href("turn", turnId)}>Turn</a>}
                <span class="grow" />
                {version > 1 && (
                  <button
                    type="button"
                    class="button"
                    aria-expanded={compared.value === version}
                    onClick={() => (compared.value = compared.value === version ? undefined : version)}
                  >
                    Difference
                  </button>
                )}
                {version !== newest && !deleted && (
                  <button type="button" class="button" onClick={() => void restore(version)}>
                    <Icon name="rewind" /> Restore
                  </button>
                )}
              </div>
              {compared.value === version && <Compare path={path} version={version} />}
            </li>
          ))}
        </ul>
      )}
    </WhenLoaded>
  );
}

/** The difference of a version to the one before it. */
function Compare({ path, version }: { path: string; version: number }): JSX.Element {
  const loaded = useLoad(async () => {
    const read = async (wanted: number) => {
      const query = { path, version: wanted };
      return (await call<"documentsGet">("GET", "/api/documents/content", { query })).document.content;
    };
    const [before, after] = await Promise.all([read(version - 1), read(version)]);
    return { before, after };
  }, [path, version]);
  return <WhenLoaded state={loaded}>{({ before, after }) => <DiffView before={before} after={after} />}</WhenLoaded>;
}
