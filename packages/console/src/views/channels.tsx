// The accounts on chat platforms: state, owner replica, last messages and errors; adding, checking, pausing and removing them.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { call, type Result } from "../api/http.ts";
import { visible } from "../chat/markdown.ts";
import { age, withoutInstance } from "../parts/format.ts";
import { Icon } from "../parts/icons.tsx";
import { EmptyState, WhenLoaded, useLoad } from "../parts/load.tsx";
import { runAction, toast } from "../parts/toast.tsx";
import { AddAccount } from "./add-account.tsx";
import { Fact } from "./cluster.tsx";

const everyMs = 4_000;
/** Ends a move: no replica has this name. */
const anyGateway = "*";

type Account = Result<"channelsList">["accounts"][number];

export function Channels(): JSX.Element {
  const loaded = useLoad(() => call<"channelsList">("GET", "/api/channels"), [], everyMs);
  const cluster = useLoad(() => call<"clusterStatus">("GET", "/api/status"), [], everyMs);
  const gateways = (cluster.data.value?.replicas ?? []).flatMap(({ service, replica }) =>
    service === "channel-gateway" ? [replica] : [],
  );
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
      <WhenLoaded state={loaded}>
        {({ accounts }) =>
          accounts.length === 0 ? (
            <EmptyState icon="channels" title="No channel is configured">
              <p>
                Choose “Add an account”: it takes effect immediately. Accounts in <code>[channels]</code> of{" "}
                <code>parley.toml</code> are listed here too, after a restart.
              </p>
            </EmptyState>
          ) : (
            <ul class="cards">
              {accounts.map((account) => (
                <Card
                  key={`${account.channel}:${account.account}`}
                  account={account}
                  gateways={gateways}
                  changed={loaded.reload}
                />
              ))}
            </ul>
          )
        }
      </WhenLoaded>
    </div>
  );
}

function agoOf(at: string | null): string {
  if (at === null) return "–";
  const text = age(at, Date.now());
  return text === "now" ? text : `${text} ago`;
}

function sinceText(since: string): string {
  const text = age(since, Date.now());
  return text === "now" ? "just now" : `for ${text}`;
}

function tone(state: Account["state"]): string {
  if (state === "connected" || state === "listening") return "tag good";
  return state === "failing" || state === "disabled" ? "tag bad" : "tag warn";
}

interface CardProps {
  account: Account;
  gateways: readonly string[];
  changed: () => Promise<void>;
}

function Card({ account, gateways, changed }: CardProps): JSX.Element {
  const { channel, account: name, state, as, reason, since, origin, ...rest } = account;
  const path = `/api/channels/${encodeURIComponent(channel)}/${encodeURIComponent(name)}`;
  const check = () =>
    runAction(async () => {
      const { ok, text } = await call<"channelsTest">("POST", `${path}/test`, { body: {} });
      toast(ok ? `It works: ${text}` : text, !ok);
    });
  const pause = async () => {
    const isPaused = state === "paused";
    await runAction(
      () => call<"channelsPause">("POST", `${path}/${isPaused ? "resume" : "pause"}`, { body: {} }),
      isPaused ? "Resumed" : "Paused: texts wait until you resume it",
    );
    await changed();
  };
  const move = async (replica: string) => {
    const body = { replica: replica === anyGateway ? null : replica };
    await runAction(
      () => call<"channelsMove">("POST", `${path}/move`, { body }),
      body.replica === null ? "The gateways choose who holds it" : `It moves to ${replica} within seconds`,
    );
    await changed();
  };
  const remove = async () => {
    if (!window.confirm(`Remove ${channel}:${name}, its stored secrets and ${rest.waiting} waiting texts?`)) return;
    await runAction(() => call<"channelsRemove">("DELETE", path), "Removed");
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
        {since !== null && <span class="muted">{sinceText(since)}</span>}
        <div class="row actions">
          {owner !== null && gateways.length > 0 && (
            <select
              aria-label={`Gateway of ${channel}:${name}`}
              value=""
              onChange={(event) => {
                const { value } = event.currentTarget;
                event.currentTarget.value = "";
                if (value !== "") void move(value);
              }}
            >
              <option value="">Move to…</option>
              {gateways.map((each) => (
                <option key={each}>{each}</option>
              ))}
              <option value={anyGateway}>any gateway</option>
            </select>
          )}
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
      </div>
      {reason !== null && (
        <p class="bad">
          {visible(reason)}{" "}
          <a href={`/docs/channels/${channel}#troubleshooting`} target="_blank">
            What to do
          </a>
        </p>
      )}
      <dl class="facts">
        {facts.map(([key, value]) => (
          <Fact key={key} name={key} value={visible(value)} />
        ))}
      </dl>
    </li>
  );
}
