// Messages that wait: being sent, failed, or queued until the running turn ends. Queued ones can be changed and taken back.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { call } from "../api/http.ts";
import { Icon } from "../parts/icons.tsx";
import { runAction } from "../parts/toast.tsx";
import { Files } from "./files.tsx";
import { visible } from "./markdown.ts";
import type { OpenSession, Outgoing, Queued } from "./session.ts";

export function Outbox({ session, running }: { session: OpenSession; running: boolean }): JSX.Element {
  const queued = session.queue.value;
  const own = session.outgoing.value.filter(({ state, text }) => {
    return state !== "queued" || !queued.some((row) => row.text === text);
  });
  return (
    <>
      {own.map((message) => (
        <Sending key={message.key} session={session} message={message} />
      ))}
      {queued.length > 0 && running && (
        <section class="queue" aria-label="Waiting messages">
          <p class="sender">Waiting until this turn ends, or joining it</p>
          {queued.map((row) => (
            <QueuedRow key={row.inboxId} session={session} row={row} />
          ))}
        </section>
      )}
    </>
  );
}

function Sending({ session, message }: { session: OpenSession; message: Outgoing }): JSX.Element {
  const { key, text, files, state, problem } = message;
  return (
    <article class={`message user ${state}`} aria-label="You">
      {text !== "" && (
        <div class="bubble plain" dir="auto">
          {visible(text)}
        </div>
      )}
      <Files files={files} />
      {state === "failed" ? (
        <p class="error-text" role="alert">
          Not sent: {problem}{" "}
          <button type="button" class="link-button" onClick={() => void session.send(text, files, undefined, key)}>
            Try again
          </button>{" "}
          <button type="button" class="link-button" onClick={() => session.discard(key)}>
            Discard
          </button>
        </p>
      ) : (
        <p class="sender">{state === "sending" ? "Sending…" : "Stored"}</p>
      )}
    </article>
  );
}

/** The most lines that are shown of a message while it is edited. */
const maxEditedLines = 8;

/** Puts the cursor behind the text when the field appears. */
function focusAtEnd(field: HTMLTextAreaElement | null): void {
  field?.focus();
  field?.setSelectionRange(field.value.length, field.value.length);
}

function QueuedRow({ session, row }: { session: OpenSession; row: Queued }): JSX.Element {
  const editing = useSignal(false);
  const path = `/api/sessions/${session.id}/queue/${row.inboxId}`;
  const change = async (what: () => Promise<unknown>) => {
    await runAction(what);
    await session.refreshQueue();
  };
  const save = (event: Event) => {
    event.preventDefault();
    const text = new FormData(event.currentTarget as HTMLFormElement).get("text");
    editing.value = false;
    if (typeof text !== "string" || text.trim() === "" || text === row.text) return;
    void change(() => call<"queueChange">("PATCH", path, { body: { text } }));
  };
  const keys = (event: KeyboardEvent) => {
    if (event.isComposing) return;
    if (event.key === "Escape") editing.value = false;
    else if (event.key === "Enter" && !event.shiftKey)
      (event.currentTarget as HTMLTextAreaElement).form?.requestSubmit();
    else return;
    event.preventDefault();
  };
  if (editing.value) {
    return (
      <form class="queued-row" onSubmit={save}>
        <textarea
          ref={focusAtEnd}
          name="text"
          rows={Math.min(maxEditedLines, row.text.split("\n").length)}
          aria-label="Message"
          defaultValue={row.text}
          onKeyDown={keys}
        />
        <button type="submit" class="button">
          Save
        </button>
        <button type="button" class="button" onClick={() => (editing.value = false)}>
          Cancel
        </button>
      </form>
    );
  }
  return (
    <div class="queued-row">
      <span class="plain" dir="auto">
        {visible(row.text)}
      </span>
      <span class="tag">{row.mode}</span>
      <button type="button" class="icon-button small" aria-label="Edit" onClick={() => (editing.value = true)}>
        <Icon name="edit" />
      </button>
      <button
        type="button"
        class="icon-button small"
        aria-label="Take back"
        onClick={() => void change(() => call<"queueCancel">("DELETE", path))}
      >
        <Icon name="cross" />
      </button>
    </div>
  );
}
