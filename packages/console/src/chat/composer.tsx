// Writing: text, files by drop and paste, slash commands, and what happens to a message while a turn runs.
import { useSignal, type Signal } from "@preact/signals";
import type { Attachment, QueueMode } from "@parley/contracts";
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { call, messageOf, request, type Result } from "../api/http.ts";
import { bytes } from "../parts/format.ts";
import { Icon } from "../parts/icons.tsx";
import { runAction, toast } from "../parts/toast.tsx";
import { commandsFor } from "./commands.ts";
import { readDraft, writeDraft } from "./drafts.ts";
import type { OpenSession } from "./session.ts";

type Command = Result<"commandsList">["commands"][number];

let commands: Promise<readonly Command[]> | undefined;

interface Props {
  session: OpenSession;
  running: boolean;
}

const maxHeightPx = 240;

export function Composer({ session, running }: Props): JSX.Element {
  const draft = useMemo(() => readDraft(session.id), [session.id]);
  const text = useSignal(draft.text);
  const files = useSignal(draft.files);
  const uploading = useSignal(0);
  const mode = useSignal<QueueMode | "">("");
  const known = useSignal<readonly Command[]>([]);
  const selected = useSignal(0);
  const dragging = useSignal(false);
  const area = useRef<HTMLTextAreaElement>(null);
  const picker = useRef<HTMLInputElement>(null);

  useEffect(() => {
    commands ??= call<"commandsList">("GET", "/api/commands").then((result) => result.commands);
    void commands.then((all) => (known.value = all)).catch(() => (commands = undefined));
    area.current?.focus();
    if (performance.getEntriesByName("parley-interactive").length === 0) performance.mark("parley-interactive");
  }, []);
  useEffect(() => {
    const element = area.current;
    if (element === null) return;
    element.style.height = "auto";
    element.style.height = `${Math.min(maxHeightPx, element.scrollHeight)}px`;
  }, [text.value]);
  // Before the next event, which may leave the chat.
  useLayoutEffect(() => writeDraft(session.id, { text: text.value, files: files.value }), [text.value, files.value]);

  const menu = commandsFor(text.value, known.value);
  const send = () => {
    if (uploading.value > 0) return;
    const message = text.value.trim();
    if (message === "" && files.value.length === 0) return;
    void session.send(message, files.value, mode.value === "" ? undefined : mode.value);
    text.value = "";
    files.value = [];
    area.current?.focus();
  };
  const complete = (command: Command | undefined) => {
    if (command === undefined) return;
    text.value = `${command.name} `;
    selected.value = 0;
    area.current?.focus();
  };
  const add = async (given: Iterable<File>) => {
    for (const file of given) {
      uploading.value++;
      try {
        const stored = await request("POST", "/api/attachments", { body: file, query: { name: file.name } });
        files.value = [...files.value, stored as Attachment];
      } catch (error) {
        toast(`${file.name}: ${messageOf(error)}`, true);
      } finally {
        uploading.value--;
      }
    }
  };
  const keys = (event: KeyboardEvent) => {
    if (event.isComposing) return;
    if (menu.length > 0 && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      const step = event.key === "ArrowDown" ? 1 : -1;
      selected.value = (selected.value + step + menu.length) % menu.length;
    } else if (menu.length > 0 && event.key === "Tab") complete(menu[selected.value]);
    else if (menu.length > 0 && event.key === "Enter" && menu[selected.value]?.name !== text.value.trim()) {
      complete(menu[selected.value]);
    } else if (event.key === "Enter" && !event.shiftKey) send();
    else if (event.key === "Escape" && running) void runAction(() => session.stop(), "Stopping the turn");
    else return;
    event.preventDefault();
  };
  return (
    <div
      class={dragging.value ? "composer dragging" : "composer"}
      onDragOver={(event) => {
        event.preventDefault();
        dragging.value = true;
      }}
      onDragLeave={() => (dragging.value = false)}
      onDrop={(event) => {
        event.preventDefault();
        dragging.value = false;
        void add(event.dataTransfer?.files ?? []);
      }}
    >
      {menu.length > 0 && (
        <ul class="slash-menu" id="slash-menu" role="listbox" aria-label="Commands">
          {menu.map((command, index) => (
            <li
              key={command.name}
              id={`command-${index}`}
              role="option"
              aria-selected={index === selected.value}
              onClick={() => complete(command)}
            >
              <code>{command.usage}</code> <span class="muted">{command.summary}</span>
            </li>
          ))}
        </ul>
      )}
      <FileList files={files} uploading={uploading.value} />
      <textarea
        ref={area}
        rows={1}
        value={text.value}
        placeholder={running ? "Write while it works…" : "Write to your agent…"}
        aria-label="Message"
        aria-controls={menu.length > 0 ? "slash-menu" : undefined}
        aria-activedescendant={menu.length > 0 ? `command-${selected.value}` : undefined}
        onInput={(event) => {
          text.value = event.currentTarget.value;
          selected.value = 0;
        }}
        onKeyDown={keys}
        onPaste={(event) => {
          const pasted = event.clipboardData?.files;
          if (pasted === undefined || pasted.length === 0) return;
          event.preventDefault();
          void add(pasted);
        }}
      />
      <div class="composer-row">
        <input
          ref={picker}
          type="file"
          multiple
          hidden
          aria-label="Files"
          onChange={(event) => {
            void add([...(event.currentTarget.files ?? [])]);
            event.currentTarget.value = "";
          }}
        />
        <button
          type="button"
          class="icon-button"
          aria-label="Attach files"
          title="Attach files (or drop or paste them)"
          onClick={() => picker.current?.click()}
        >
          <Icon name="attach" />
        </button>
        <span class="composer-hint muted">
          <kbd>/</kbd> commands
        </span>
        <span class="grow" />
        {running && (
          <>
            <select
              aria-label="While the turn runs"
              value={mode.value}
              onChange={(event) => (mode.value = event.currentTarget.value as QueueMode | "")}
            >
              <option value="">Send as configured</option>
              <option value="steer">Join this turn</option>
              <option value="queue">Wait for its end</option>
              <option value="interrupt">Stop it first</option>
            </select>
            <button
              type="button"
              class="icon-button danger"
              aria-label="Stop"
              title="Stop the turn (Esc)"
              onClick={() => void runAction(() => session.stop(), "Stopping the turn")}
            >
              <Icon name="stop" />
            </button>
          </>
        )}
        <button
          type="button"
          class="icon-button primary"
          aria-label="Send"
          disabled={uploading.value > 0 || (text.value.trim() === "" && files.value.length === 0)}
          onClick={send}
        >
          <Icon name="send" />
        </button>
      </div>
    </div>
  );
}

function FileList({ files, uploading }: { files: Signal<readonly Attachment[]>; uploading: number }) {
  if (files.value.length === 0 && uploading === 0) return null;
  return (
    <ul class="chips" aria-label="Attached files">
      {files.value.map(({ sha256, name, bytes: size }) => (
        <li key={sha256}>
          <Icon name="file" /> {name} <span class="muted">{bytes(size)}</span>
          <button
            type="button"
            class="icon-button small"
            aria-label={`Remove ${name}`}
            onClick={() => (files.value = files.value.filter((each) => each.sha256 !== sha256))}
          >
            <Icon name="cross" />
          </button>
        </li>
      ))}
      {uploading > 0 && <li role="status">Uploading…</li>}
    </ul>
  );
}
