// All sessions: search, filters, and a list that shows only the rows on the screen.
import { useSignal, type Signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { call, messageOf } from "../api/http.ts";
import { go, href } from "../app/router.ts";
import { visible } from "../chat/markdown.ts";
import { newChat } from "../chat/new-chat.ts";
import type { SessionRow } from "../chat/recent-state.ts";
import { age, compact, money } from "../parts/format.ts";
import { Icon } from "../parts/icons.tsx";
import { EmptyState, ErrorNotice } from "../parts/load.tsx";
import { VirtualList } from "../parts/virtual-list.tsx";
import { asTree } from "./session-tree.ts";

const pageSize = 200;
const pauseMs = 200;
const rowPx = 58;

/** With the place where a message contains the words. */
const foundRowPx = 80;

/** What the choice of a state asks for. */
const states = {
  active: { label: "Active", query: { status: "active" } },
  running: { label: "Running", query: { activity: "running" } },
  waiting: { label: "Waiting for somebody", query: { activity: "waiting" } },
  queued: { label: "With queued messages", query: { activity: "queued" } },
  archived: { label: "Archived", query: { status: "archived" } },
  all: { label: "All", query: {} },
} as const;

interface Filter {
  text: string;
  state: keyof typeof states;
  origin: "" | "subagents" | "calls";
  channel: string;
  person: string;
}

interface Found {
  rows: readonly SessionRow[];
  /** By the id of the session. */
  excerpts: ReadonlyMap<string, string>;
}

export function Sessions(): JSX.Element {
  const filter = useSignal<Filter>({ text: "", state: "active", origin: "", channel: "", person: "" });
  const found = useSignal<Found | undefined>(undefined);
  const channels = useSignal<readonly string[]>([]);
  const more = useSignal(false);
  const problem = useSignal<Error | undefined>(undefined);
  const { text, state, origin, channel, person } = filter.value;
  const load = (next: boolean) => read(filter.value, found, more, problem, next);
  useEffect(() => {
    const timer = setTimeout(() => void load(false), text === "" && person === "" ? 0 : pauseMs);
    return () => clearTimeout(timer);
  }, [text, state, origin, channel, person]);
  useEffect(() => {
    // Without the list there is no choice of channels; the failure of the sessions says why.
    void call<"channelsList">("GET", "/api/channels")
      .then(({ accounts }) => (channels.value = [...new Set(accounts.map((each) => each.channel))].toSorted()))
      .catch(() => undefined);
  }, []);
  const set = (change: Partial<Filter>) => (filter.value = { ...filter.value, ...change });
  const { rows, excerpts } = found.value ?? { rows: [], excerpts: new Map<string, string>() };
  const tree = useMemo(() => asTree(rows), [rows]);
  const isFiltered = text !== "" || state !== "active" || channel !== "" || person !== "";
  return (
    <div class="page fill">
      <header class="page-head">
        <h1>Sessions</h1>
        <button type="button" class="button primary" onClick={() => void newChat()}>
          <Icon name="plus" /> New chat
        </button>
      </header>
      <div class="filters" role="search">
        <input
          type="search"
          data-search
          placeholder="Search titles and messages"
          aria-label="Search titles and messages"
          onInput={(event) => set({ text: event.currentTarget.value })}
        />
        <select
          aria-label="State"
          value={state}
          onChange={(event) => set({ state: event.currentTarget.value as Filter["state"] })}
        >
          {Object.entries(states).map(([name, { label }]) => (
            <option key={name} value={name}>
              {label}
            </option>
          ))}
        </select>
        <select aria-label="Channel" onChange={(event) => set({ channel: event.currentTarget.value })}>
          <option value="">Every channel</option>
          <option value="http">Console and API</option>
          <option value="internal">Jobs and notices</option>
          {channels.value.map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
        <input
          type="search"
          placeholder="Person"
          aria-label="Person: a name or an id"
          onInput={(event) => set({ person: event.currentTarget.value.trim() })}
        />
        <select aria-label="Kind" onChange={(event) => set({ origin: event.currentTarget.value as Filter["origin"] })}>
          <option value="">Conversations</option>
          <option value="subagents">With sub-agents</option>
          <option value="calls">With single calls</option>
        </select>
      </div>
      {problem.value !== undefined && <ErrorNotice error={problem.value} retry={() => load(false)} />}
      {found.value === undefined && problem.value === undefined && (
        <div class="loading" role="status" aria-label="Loading" />
      )}
      {found.value !== undefined && rows.length === 0 && (
        <EmptyState icon="sessions" title={isFiltered ? "No session matches" : "No sessions here"}>
          <p>
            {text === ""
              ? isFiltered
                ? "Choose other filters, or clear the person."
                : "Start a chat, or choose other filters."
              : "The search finds messages that contain all words, each from its beginning. Try fewer words."}
          </p>
        </EmptyState>
      )}
      {rows.length > 0 && (
        <VirtualList
          rows={tree}
          rowPx={excerpts.size > 0 ? foundRowPx : rowPx}
          label="Sessions"
          nearEnd={() => more.value && void load(true)}
          render={({ row, depth }) => (
            <Line
              key={row.sessionId}
              row={row}
              depth={depth}
              excerpt={excerpts.size > 0 ? (excerpts.get(row.sessionId) ?? "") : undefined}
            />
          )}
        />
      )}
    </div>
  );
}

/** The channel of a session's route; the owner's shared thread and threads of jobs have their own names. */
function channelOf({ key, parentId }: SessionRow): string {
  const channel = key.split(/[:~]/)[0] ?? key;
  return parentId === null ? (channel === "http" ? "console and API" : channel) : "sub-agent";
}

let reading = 0;

async function read(
  { text, state, origin, channel, person }: Filter,
  found: Signal<Found | undefined>,
  more: Signal<boolean>,
  problem: Signal<Error | undefined>,
  next: boolean,
): Promise<void> {
  if (next && !more.value) return;
  const mine = ++reading;
  more.value = false;
  const shown = next ? found.value : undefined;
  try {
    const query = {
      limit: pageSize,
      before: shown?.rows.at(-1)?.sessionId,
      text: text.trim(),
      messages: text.trim() === "" ? undefined : true,
      ...states[state].query,
      channel,
      person,
      subagents: origin === "subagents",
      calls: origin === "calls",
    };
    const { sessions, matches = [] } = await call<"sessionsList">("GET", "/api/sessions", { query });
    if (mine !== reading) return;
    found.value = {
      rows: [...(shown?.rows ?? []), ...sessions],
      excerpts: new Map([
        ...(shown?.excerpts ?? []),
        ...matches.map((each) => [each.sessionId, each.excerpt] as const),
      ]),
    };
    more.value = sessions.length === pageSize;
    problem.value = undefined;
  } catch (error) {
    if (mine === reading) problem.value = error instanceof Error ? error : new Error(messageOf(error));
  }
}

/** `excerpt`: undefined: no search in messages; empty: the title matches. */
function Line({ row, depth, excerpt }: { row: SessionRow; depth: number; excerpt: string | undefined }): JSX.Element {
  const state = useRef<HTMLAnchorElement>(null);
  const { sessionId, title, key, messageCount, updatedAt, treeCost, runningTurnId, parked, status, parentId } = row;
  return (
    <div
      class={`session-line${parentId === null ? "" : " child"}${excerpt === undefined ? "" : " found"}`}
      style={{ "--depth": depth }}
    >
      <a ref={state} data-row class="session-open" href={href("chat", sessionId)}>
        <span class="session-title">
          {runningTurnId !== null && (
            <span
              class={parked ? "dot waiting" : "dot running"}
              role="img"
              aria-label={parked ? "waiting" : "running"}
            />
          )}
          <bdi>{title ?? key}</bdi>
          {status === "archived" && <span class="tag">archived</span>}
        </span>
        <span class="session-facts muted">
          <span>{channelOf(row)}</span>
          <span>{compact(messageCount)} messages</span>
          <span class="session-cost">{money(treeCost)}</span>
          <span>{age(updatedAt, Date.now())}</span>
        </span>
        {excerpt !== undefined && <span class="session-excerpt">{visible(excerpt)}</span>}
      </a>
      <button
        type="button"
        class="icon-button"
        aria-label={`Details of ${title ?? key}`}
        title="Details: rename, archive, fork, compact, rewind"
        onClick={() => go("session", sessionId)}
      >
        <Icon name="chevron" />
      </button>
    </div>
  );
}
