// The palette (Ctrl-K): go to a view or a session, start a session. And the list of keys (?).
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { call } from "../api/http.ts";
import { newChat } from "../chat/new-chat.ts";
import { Icon, type IconName } from "../parts/icons.tsx";
import { helpOpen } from "./keys.ts";
import { paletteOpen } from "./palette-state.ts";
import { go } from "./router.ts";
import { listedViews } from "./views.ts";

export { paletteOpen } from "./palette-state.ts";

interface Entry {
  id: string;
  label: string;
  icon: IconName;
  run: () => void;
}

const pauseMs = 120;

export function Palette(): JSX.Element | null {
  return paletteOpen.value ? <OpenPalette /> : null;
}

function OpenPalette(): JSX.Element {
  const text = useSignal("");
  const selected = useSignal(0);
  const sessions = useSignal<readonly Entry[]>([]);
  const close = () => (paletteOpen.value = false);
  useEffect(() => {
    const timer = setTimeout(() => {
      void findSessions(text.value).then((found) => (sessions.value = found));
    }, pauseMs);
    return () => clearTimeout(timer);
  }, [text.value]);
  const wanted = text.value.trim().toLowerCase();
  const entries = [...fixedEntries(), ...sessions.value].filter(
    ({ label, id }) => id.startsWith("session:") || label.toLowerCase().includes(wanted),
  );
  const run = (entry: Entry | undefined) => {
    close();
    entry?.run();
  };
  const keys = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown") selected.value = Math.min(entries.length - 1, selected.value + 1);
    else if (event.key === "ArrowUp") selected.value = Math.max(0, selected.value - 1);
    else if (event.key === "Enter") run(entries[selected.value]);
    else return;
    event.preventDefault();
  };
  const active = entries[selected.value];
  return (
    <Dialog label="Go to" onClose={close}>
      <input
        class="palette-input"
        type="text"
        role="combobox"
        aria-label="View or session"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={active === undefined ? undefined : `entry-${active.id}`}
        placeholder="Go to a view or a session…"
        autocomplete="off"
        onKeyDown={keys}
        onInput={(event) => {
          text.value = event.currentTarget.value;
          selected.value = 0;
        }}
      />
      <ul id="palette-list" class="palette-list" role="listbox" aria-label="Results">
        {entries.map((entry, index) => (
          <li
            key={entry.id}
            id={`entry-${entry.id}`}
            role="option"
            aria-selected={index === selected.value}
            onClick={() => run(entry)}
          >
            <Icon name={entry.icon} /> <span>{entry.label}</span>
          </li>
        ))}
        {entries.length === 0 && <li class="muted">Nothing matches. Try part of a session's title.</li>}
      </ul>
    </Dialog>
  );
}

function fixedEntries(): Entry[] {
  return [
    ...listedViews.map(({ name, title, icon }) => ({ id: `view:${name}`, label: title, icon, run: () => go(name) })),
    { id: "new", label: "New chat", icon: "plus" as const, run: () => void newChat() },
  ];
}

async function findSessions(text: string): Promise<Entry[]> {
  const query = { limit: 8, text: text.trim() };
  const { sessions } = await call<"sessionsList">("GET", "/api/sessions", { query }).catch(() => ({
    sessions: [],
  }));
  return sessions.map(({ sessionId, title, key }) => ({
    id: `session:${sessionId}`,
    label: title ?? key,
    icon: "chat",
    run: () => go("chat", sessionId),
  }));
}

/** A modal dialog; Escape and a click outside close it. */
function Dialog(props: { label: string; onClose: () => void; children: preact.ComponentChildren }): JSX.Element {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = ref.current;
    dialog?.showModal();
    dialog?.querySelector<HTMLElement>("input, textarea, button")?.focus();
    return () => dialog?.close();
  }, []);
  return (
    <dialog
      ref={ref}
      class="dialog"
      aria-label={props.label}
      // With Escape: the event `close` comes later, and a key in between would still find the dialog open. `close()` gives the focus back.
      onCancel={(event) => {
        event.preventDefault();
        event.currentTarget.close();
        props.onClose();
      }}
      onClose={props.onClose}
      onClick={(event) => {
        if (event.target === ref.current) props.onClose();
      }}
    >
      <div class="dialog-body">{props.children}</div>
    </dialog>
  );
}

export function KeyHelp(): JSX.Element | null {
  if (!helpOpen.value) return null;
  const keys: [string, string][] = [
    ["Ctrl K", "Go to a view or a session"],
    ["j / k", "Next or previous row"],
    ["Enter", "Open the row; in the chat: send"],
    ["Shift Enter", "New line"],
    ["Esc", "Close; in the chat: stop the turn"],
    ["/", "Search, or write"],
    ["?", "This list"],
    ...listedViews.map(({ key, title }): [string, string] => [`g ${key}`, title]),
  ];
  return (
    <Dialog label="Keys" onClose={() => (helpOpen.value = false)}>
      <h2>Keys</h2>
      <dl class="key-list">
        {keys.map(([key, what]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <button type="button" class="button dialog-close" onClick={() => (helpOpen.value = false)}>
        Close
      </button>
    </Dialog>
  );
}
