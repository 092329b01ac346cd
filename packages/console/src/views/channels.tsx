// The accounts on chat platforms: state, owner replica, last messages and errors; adding, checking, pausing and removing them.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { call, type Result } from "../api/http.ts";
import { visible } from "../chat/markdown.ts";
import { age, withoutInstance } from "../parts/format.ts";
import { Icon } from "../parts/icons.tsx";
import { Empty, Show, useLoad } from "../parts/load.tsx";
import { act, toast } from "../parts/toast.tsx";
import { AddAccount } from "./add-account.tsx";

const everyMs = 4_000;

type Account = Result<"channelsList">["accounts"][number];

export function Channels(): JSX.Element {
  const loaded = useLoad(() => call<"channelsList">("GET", "/api/channels"), [], everyMs);
  const adds = useSignal(false);
  const added = () => {
    adds.value = false;
    void loaded.reload();
  };
  return (
    <div class="page">
      <header class="page-head">
        <h1>Channels</h1>
        <button
          type="button"
          class="button primary"
          aria-expanded={adds.value}
          onClick={() => (adds.value = !adds.value)}
        >
          <Icon name="plus" /> Add an account
        </button>
      </header>
      {adds.value && <AddAccount added={added} />}
      <Show of={loaded}>
        {({ accounts }) =>
          accounts.length === 0 ? (
            <Empty icon="channels" title="No channel is configured">
              <p>
                Choose “Add an account”: it takes effect at once. Accounts in <code>[channels]</code> of{" "}
                <code>parley.toml</code> are listed here too, after a restart.
              </p>
            </Empty>
          ) : (
            <ul class="cards">
              {accounts.map((account) => (
                <Card key={`${account.channel}:${account.account}`} account={account} changed={loaded.reload} />
              ))}
            </ul>
          )
        }
      </Show>
    </div>
  );
}

function agoOf(at: string | null): string {
  if (at === null) return "–";
  const text = age(at, Date.now());
  return text === "now" ? text : `${text} ago`;
}

function tone(state: Account["state"]): string {
  if (state === "connected" || state === "listening") return "tag good";
  return state === "failing" || state === "disabled" ? "tag bad" : "tag warn";
}

function Card({ account, changed }: { account: Account; changed: () => Promise<void> }): JSX.Element {
  const { channel, account: name, state, as, reason, since, origin, ...rest } = account;
  const path = `/api/channels/${encodeURIComponent(channel)}/${encodeURIComponent(name)}`;
  const check = () =>
    act(async () => {
      const { ok, text } = await call<"channelsTest">("POST", `${path}/test`, { body: {} });
      toast(ok ? `It works: ${text}` : text, !ok);
    });
  const pause = async () => {
    const isPaused = state === "paused";
    await act(
      () => call<"channelsPause">("POST", `${path}/${isPaused ? "resume" : "pause"}`, { body: {} }),
      isPaused ? "Resumed" : "Paused: texts wait until you resume it",
    );
    await changed();
  };
  const remove = async () => {
    if (!window.confirm(`Remove ${channel}:${name}, its stored secrets and ${rest.waiting} waiting texts?`)) return;
    await act(() => call<"channelsRemove">("DELETE", path), "Removed");
    await changed();
  };
  const { owner, lastInAt, lastOutAt, waiting, unknown, lastError } = rest;
  const facts: [string, string][] = [
    ["Connected by", owner === null ? "–" : withoutInstance(owner)],
    ["Last message in", agoOf(lastInAt)],
    ["Last text out", agoOf(lastOutAt)],
    ["Texts that wait", String(waiting)],
    ["Unknown deliveries, last day", String(unknown)],
    ...(lastError === null ? [] : [["Last error", lastError] as [string, string]]),
  ];
  return (
    <li class="card" data-row tabIndex={-1}>
      <div class="row">
        <h2>
          {visible(channel)}:{visible(name)}
        </h2>
        <span class={tone(state)}>{state}</span>
        {as !== null && <span class="muted">{visible(as)}</span>}
        {since !== null && <span class="muted">since {age(since, Date.now())}</span>}
        <span class="grow" />
        <button type="button" class="button" onClick={() => void check()}>
          Test
        </button>
        <button type="button" class="button" onClick={() => void pause()}>
          {state === "paused" ? "Resume" : "Pause"}
        </button>
        {origin === "added" && (
          <button type="button" class="button danger" onClick={() => void remove()}>
            Remove
          </button>
        )}
      </div>
      {reason !== null && <p class="bad">{visible(reason)}</p>}
      <dl class="facts">
        {facts.map(([key, value]) => (
          <div key={key}>
            <dt>{key}</dt>
            <dd>{visible(value)}</dd>
          </div>
        ))}
      </dl>
    </li>
  );
}
