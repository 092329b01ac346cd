// The chat: one session, its conversation and the composer.
import { signal, useComputed, useSignal, type Signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { call, messageOf } from "../api/http.ts";
import { href, replaceRoute, route } from "../app/router.ts";
import { Icon } from "../parts/icons.tsx";
import { EmptyState, ErrorNotice } from "../parts/load.tsx";
import { runAction } from "../parts/toast.tsx";
import { Composer } from "./composer.tsx";
import { LiveRow } from "./items.tsx";
import { newChat } from "./new-chat.ts";
import { Outbox } from "./outbox.tsx";
import { OpenSession } from "./session.ts";
import { Markdown } from "./text.tsx";
import { Elapsed } from "./tool-card.tsx";
import { Transcript } from "./transcript.tsx";

const opened = signal<OpenSession | undefined>(undefined);

export function Chat(): JSX.Element {
  const { id } = route.value;
  const problem = useSignal<Error | undefined>(undefined);
  const none = useSignal(false);
  useEffect(() => {
    if (id !== null) return;
    none.value = false;
    void openLast(none, problem);
  }, [id]);
  useEffect(() => {
    if (id === null) return undefined;
    const session = new OpenSession(id);
    opened.value = session;
    void session.open();
    return () => {
      session.close();
      if (opened.value === session) opened.value = undefined;
    };
  }, [id]);
  if (problem.value !== undefined) return <ErrorNotice error={problem.value} />;
  if (id === null && none.value) {
    return (
      <EmptyState icon="chat" title="Your agent is ready">
        <p>Everything you write here reaches the same agent as your other channels.</p>
        <button type="button" class="button primary" onClick={() => void newChat()}>
          <Icon name="plus" /> Start a chat
        </button>
      </EmptyState>
    );
  }
  const session = opened.value;
  if (session === undefined || session.id !== id) return <div class="loading" role="status" aria-label="Loading" />;
  return <Conversation key={session.id} session={session} />;
}

/** Opens the session that was used last. */
async function openLast(none: Signal<boolean>, problem: Signal<Error | undefined>): Promise<void> {
  try {
    const { sessions } = await call<"sessionsList">("GET", "/api/sessions", { query: { limit: 1, status: "active" } });
    const [last] = sessions;
    if (last === undefined) none.value = true;
    else if (route.value.view === "chat" && route.value.id === null) replaceRoute("chat", last.sessionId);
  } catch (error) {
    problem.value = error instanceof Error ? error : new Error(messageOf(error));
  }
}

function Conversation({ session }: { session: OpenSession }): JSX.Element {
  const problem = session.problem.value;
  const running = useComputed(() => {
    const { turn } = session.chat.value;
    return turn !== null || (session.summary.value?.runningTurnId ?? null) !== null;
  });
  return (
    <div class="chat">
      <Head session={session} />
      <Transcript session={session}>
        {problem !== undefined && <ErrorNotice error={problem} retry={() => session.open()} />}
        <LiveRow session={session} />
        <Answers session={session} />
        <Activity session={session} running={running.value} />
        <Outbox session={session} running={running.value} />
      </Transcript>
      <Composer session={session} running={running.value} />
    </div>
  );
}

function Head({ session }: { session: OpenSession }): JSX.Element {
  const summary = session.summary.value;
  const editing = useSignal(false);
  const rename = (event: Event) => {
    event.preventDefault();
    const title = new FormData(event.currentTarget as HTMLFormElement).get("title");
    editing.value = false;
    if (typeof title !== "string" || title.trim() === "") return;
    void runAction(async () => {
      await call<"sessionsChange">("PATCH", `/api/sessions/${session.id}`, { body: { title: title.trim() } });
      await session.refresh();
    });
  };
  const title = summary?.title ?? "New chat";
  return (
    <header class="chat-head">
      {editing.value ? (
        <form class="row grow" onSubmit={rename}>
          <input name="title" type="text" aria-label="Title" defaultValue={title} maxLength={200} />
          <button type="submit" class="button">
            Rename
          </button>
        </form>
      ) : (
        <h1>
          <bdi>{title}</bdi>
        </h1>
      )}
      {!editing.value && (
        <button
          type="button"
          class="icon-button"
          aria-label="Rename"
          title="Rename"
          onClick={() => (editing.value = true)}
        >
          <Icon name="edit" />
        </button>
      )}
      <span class="grow" />
      {summary?.overrides.model !== undefined && <span class="tag">{summary.overrides.model}</span>}
      {summary?.overrides.permissionMode !== undefined && <span class="tag">{summary.overrides.permissionMode}</span>}
      <a
        class="icon-button"
        aria-label="Details of the session"
        title="Details: files to rewind, fork, compact, archive"
        href={href("session", session.id)}
      >
        <Icon name="settings" />
      </a>
      <a class="icon-button" aria-label="All sessions" title="All sessions" href={href("sessions")}>
        <Icon name="sessions" />
      </a>
    </header>
  );
}

function Answers({ session }: { session: OpenSession }): JSX.Element {
  return (
    <>
      {session.answers.value.map(({ key, command, text }) => (
        <section key={key} class="command-answer" aria-label={`Answer of ${command}`}>
          <p class="sender">
            <code>{command}</code>
          </p>
          <Markdown text={text} />
        </section>
      ))}
    </>
  );
}

function Activity({ session, running }: { session: OpenSession; running: boolean }): JSX.Element | null {
  const turn = useComputed(() => session.chat.value.turn).value;
  const isStreaming = useComputed(() => {
    const { live } = session.chat.value;
    return live !== null && (live.text !== "" || live.calls.length > 0);
  }).value;
  const waitsForPerson = useComputed(() => {
    const { questions, approvals, tools } = session.chat.value;
    const isOpen = (callId: string) => (tools.get(callId)?.output ?? null) === null;
    return (
      questions.size > 0 || [...approvals.values()].some(({ decision, callId }) => decision === null && isOpen(callId))
    );
  }).value;
  if (!running) return null;
  return (
    <div class="activity" role="status">
      {turn?.notices.map((notice, index) => (
        <p key={index}>{notice}</p>
      ))}
      {!isStreaming && (
        <p>
          {waitsForPerson ? <span class="dot waiting" /> : <span class="spinner" />}{" "}
          {waitsForPerson ? "Waiting for you" : (turn?.activity ?? "Working")}{" "}
          {turn !== null && !waitsForPerson && <Elapsed key={turn.turnId} sinceMs={turn.startedAtMs} />}
        </p>
      )}
    </div>
  );
}
