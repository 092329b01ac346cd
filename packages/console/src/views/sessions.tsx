// All sessions: search, filters, and a list that shows only the rows on the screen.
import { useSignal, type Signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { call, messageOf } from "../api/http.ts";
import { go, href } from "../app/router.ts";
import { newChat } from "../chat/new-chat.ts";
import type { SessionRow } from "../chat/recent-state.ts";
import { age, compact, money } from "../parts/format.ts";
import { Icon } from "../parts/icons.tsx";
import { Empty, Failure } from "../parts/load.tsx";
import { VirtualList } from "../parts/virtual-list.tsx";

const pageSize = 200;
const pauseMs = 200;
const rowPx = 58;

interface Filter {
  text: string;
  status: "active" | "archived" | "";
  origin: "" | "subagents" | "calls";
  channel: string;
}

export function Sessions(): JSX.Element {
  const filter = useSignal<Filter>({ text: "", status: "active", origin: "", channel: "" });
  const rows = useSignal<readonly SessionRow[] | undefined>(undefined);
  const more = useSignal(false);
  const problem = useSignal<Error | undefined>(undefined);
  const { text, status, origin } = filter.value;
  useEffect(() => {
    const timer = setTimeout(() => void read(filter.value, rows, more, problem, false), text === "" ? 0 : pauseMs);
    return () => clearTimeout(timer);
  }, [text, status, origin]);
  const set = (change: Partial<Filter>) => (filter.value = { ...filter.value, ...change });
  const all = rows.value ?? [];
  const channels = [...new Set(all.map(channelOf))].toSorted();
  const shown = filter.value.channel === "" ? all : all.filter((row) => channelOf(row) === filter.value.channel);
  return (
    <div class="page fill">
      <header class="page-head">
        <h1>Sessions</h1>
        <input
          type="search"
          data-search
          placeholder="Search titles"
          aria-label="Search titles"
          onInput={(event) => set({ text: event.currentTarget.value })}
        />
        <select
          aria-label="State"
          value={status}
          onChange={(event) => set({ status: event.currentTarget.value as Filter["status"] })}
        >
          <option value="active">Active</option>
          <option value="archived">Archived</option>
          <option value="">All</option>
        </select>
        <select aria-label="Channel" onChange={(event) => set({ channel: event.currentTarget.value })}>
          <option value="">Every channel</option>
          {channels.map((channel) => (
            <option key={channel}>{channel}</option>
          ))}
        </select>
        <select aria-label="Kind" onChange={(event) => set({ origin: event.currentTarget.value as Filter["origin"] })}>
          <option value="">Conversations</option>
          <option value="subagents">With sub-agents</option>
          <option value="calls">With single calls</option>
        </select>
        <button type="button" class="button primary" onClick={() => void newChat()}>
          <Icon name="plus" /> New chat
        </button>
      </header>
      {problem.value !== undefined && (
        <Failure error={problem.value} retry={() => read(filter.value, rows, more, problem, false)} />
      )}
      {rows.value === undefined && problem.value === undefined && (
        <div class="loading" role="status" aria-label="Loading" />
      )}
      {rows.value !== undefined && shown.length === 0 && (
        <Empty icon="sessions" title={text === "" ? "No sessions here" : "No title matches"}>
          <p>
            {text === "" ? "Start a chat, or choose other filters." : "The search looks at titles. Try one word of it."}
          </p>
        </Empty>
      )}
      {shown.length > 0 && (
        <VirtualList
          rows={shown}
          rowPx={rowPx}
          label="Sessions"
          nearEnd={() => more.value && void read(filter.value, rows, more, problem, true)}
          render={(row) => <Line key={row.sessionId} row={row} />}
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
  { text, status, origin }: Filter,
  rows: Signal<readonly SessionRow[] | undefined>,
  more: Signal<boolean>,
  problem: Signal<Error | undefined>,
  next: boolean,
): Promise<void> {
  if (next && !more.value) return;
  const mine = ++reading;
  more.value = false;
  const before = next ? rows.value?.at(-1)?.sessionId : undefined;
  try {
    const query = {
      limit: pageSize,
      before,
      text: text.trim(),
      status,
      subagents: origin === "subagents",
      calls: origin === "calls",
    };
    const { sessions } = await call<"sessionsList">("GET", "/api/sessions", { query });
    if (mine !== reading) return;
    rows.value = next ? [...(rows.value ?? []), ...sessions] : sessions;
    more.value = sessions.length === pageSize;
    problem.value = undefined;
  } catch (error) {
    if (mine === reading) problem.value = error instanceof Error ? error : new Error(messageOf(error));
  }
}

function Line({ row }: { row: SessionRow }): JSX.Element {
  const state = useRef<HTMLAnchorElement>(null);
  const { sessionId, title, key, messageCount, updatedAt, treeCost, runningTurnId, parked, status, parentId } = row;
  return (
    <div class={parentId === null ? "session-line" : "session-line child"}>
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
          <span>{money(treeCost)}</span>
          <span>{age(updatedAt, Date.now())}</span>
        </span>
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
