// The services and their replicas, the leader, what waits, takeovers, and dead letters.
import type { JSX } from "preact";
import { call, type Result } from "../api/http.ts";
import { href } from "../app/router.ts";
import { visible } from "../chat/markdown.ts";
import { age, bytes, clock, duration, modelName, plural, uptime, withoutInstance, words } from "../parts/format.ts";
import { WhenLoaded, useLoad } from "../parts/load.tsx";
import { runAction } from "../parts/toast.tsx";

const everyMs = 3_000;

type Replica = Result<"clusterStatus">["replicas"][number];
type Work = Result<"workGet">;
type Account = Result<"channelsList">["accounts"][number];
type DeadLetter = Work["deadLetters"][number];

export function Cluster(): JSX.Element {
  const status = useLoad(() => call<"clusterStatus">("GET", "/api/status"), [], everyMs);
  const work = useLoad(() => call<"workGet">("GET", "/api/work"), [], everyMs);
  const channels = useLoad(() => call<"channelsList">("GET", "/api/channels"), [], everyMs);
  return (
    <div class="page">
      <header class="page-head">
        <h1>Cluster</h1>
      </header>
      <WhenLoaded state={status}>
        {({ version, model, replicas }) => {
          const leader = replicas.find(({ role }) => role === "leader");
          return (
            <>
              <dl class="facts">
                <Fact name="Version" value={version} />
                <Fact name="Model" value={model === null ? "no leader responds" : modelName(model)} />
                <Fact name="Leader" value={leader?.replica ?? "none: a standby takes over within seconds"} />
                <Fact name="Epoch" value={String(leader?.epoch ?? "–")} />
              </dl>
              {model?.note != null && <p class="muted">Model: {model.note}</p>}
              <Replicas replicas={replicas} />
            </>
          );
        }}
      </WhenLoaded>
      <WhenLoaded state={work}>
        {(found) => (
          <>
            <Waiting work={found} />
            <WhenLoaded state={channels}>{({ accounts }) => <Connections accounts={accounts} />}</WhenLoaded>
            <DeadLetters letters={found.deadLetters} changed={work.reload} />
            <Takeovers takeovers={found.takeovers} />
          </>
        )}
      </WhenLoaded>
    </div>
  );
}

/** Longer values get the width of two facts. */
const longValue = 18;

export function Fact({ name, value }: { name: string; value: string }): JSX.Element {
  return (
    <div class={value.length > longValue ? "wide" : ""}>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

function Waiting({ work: { inbox, outbox, turns, unknownDeliveries } }: { work: Work }): JSX.Element {
  const waits = ({ count, oldestAt }: Work["inbox"]) =>
    oldestAt === null
      ? "none"
      : `${count}, the oldest since ${duration(Math.max(0, Date.now() - Date.parse(oldestAt)))}`;
  return (
    <section>
      <h2>Work</h2>
      <dl class="facts">
        <Fact name="Queued messages" value={waits(inbox)} />
        <Fact name="Turns that run" value={String(turns.running)} />
        <Fact name="Turns that wait for somebody" value={String(turns.parked)} />
        <Fact name="Texts to deliver" value={waits(outbox)} />
        <Fact name="Unknown deliveries, last day" value={String(unknownDeliveries)} />
      </dl>
    </section>
  );
}

function Connections({ accounts }: { accounts: readonly Account[] }): JSX.Element {
  return (
    <section>
      <h2>Connections</h2>
      {accounts.length === 0 ? (
        <p class="muted">
          No channel is configured. <a href={href("channels")}>Add an account</a>.
        </p>
      ) : (
        <div class="table-frame stacks" role="region" aria-label="Connections" tabIndex={0}>
          <table>
            <thead>
              <tr>
                <th>Account</th>
                <th>State</th>
                <th>Held by</th>
                <th>Lag</th>
                <th>Last error</th>
              </tr>
            </thead>
            <tbody>
              {accounts.map((account) => (
                <Connection key={`${account.channel}:${account.account}`} account={account} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

function Connection({ account }: { account: Account }): JSX.Element {
  const { channel, account: name, state, owner, waiting, waitingSince = null, lastError, reason } = account;
  const lag =
    waitingSince === null
      ? "none"
      : `${plural(waiting, "text")}, the oldest for ${duration(Math.max(0, Date.now() - Date.parse(waitingSince)))}`;
  return (
    <tr data-row tabIndex={-1}>
      <td>
        <a href={href("channels")}>
          {visible(channel)}:{visible(name)}
        </a>
      </td>
      <td data-label="State">{state}</td>
      <td data-label="Held by">{owner === null ? "–" : visible(withoutInstance(owner))}</td>
      <td data-label="Lag">{lag}</td>
      <td data-label="Last error">{visible(lastError ?? reason ?? "none")}</td>
    </tr>
  );
}

function DeadLetters({ letters, changed }: { letters: readonly DeadLetter[]; changed: () => Promise<void> }) {
  const retry = async ({ inboxId }: DeadLetter) => {
    const path = `/api/dead-letters/${inboxId}/retry`;
    await runAction(() => call<"deadLettersRetry">("POST", path, { body: {} }), "Queued again");
    await changed();
  };
  return (
    <section>
      <h2>Dead letters</h2>
      <ul class="lines">
        {letters.map((letter) => (
          <li key={letter.inboxId} class="row" data-row tabIndex={-1}>
            <span class="grow clip">{visible(letter.text === "" ? "(no text)" : letter.text)}</span>
            <a href={href("chat", letter.sessionId)}>{visible(letter.sessionTitle ?? "session")}</a>
            {letter.turnId !== null && <a href={href("turn", letter.turnId)}>turn</a>}
            <span class="muted">
              given up {clock(letter.failedAt ?? letter.receivedAt, new Date())}
              {letter.attempts !== null && `, ${letter.attempts} attempts`}
            </span>
            <button type="button" class="button" onClick={() => void retry(letter)}>
              Retry
            </button>
          </li>
        ))}
        {letters.length === 0 && (
          <li class="muted">None. A message is listed here when its turn was given up after too many crashes.</li>
        )}
      </ul>
    </section>
  );
}

function Takeovers({ takeovers }: { takeovers: Work["takeovers"] }): JSX.Element {
  return (
    <section>
      <h2>Takeovers</h2>
      <ol class="timeline">
        {takeovers.map(({ epoch, holder, acquiredAt }, index) => {
          const next = takeovers[index - 1];
          const untilMs = next === undefined ? Date.now() : Date.parse(next.acquiredAt);
          return (
            <li key={epoch} class={index === 0 ? "current" : ""}>
              <time datetime={acquiredAt} title={acquiredAt}>
                {clock(acquiredAt, new Date())}
              </time>
              <strong>{visible(withoutInstance(holder))}</strong>
              <span class="muted">
                epoch {epoch}, {index === 0 ? "leads since" : "led for"}{" "}
                {duration(Math.max(0, untilMs - Date.parse(acquiredAt)))}
              </span>
            </li>
          );
        })}
      </ol>
      {takeovers.length === 1 && (
        <p class="muted">
          The first leader, {takeovers[0] === undefined ? "" : age(takeovers[0].acquiredAt, Date.now())}; there was no
          takeover.
        </p>
      )}
    </section>
  );
}

function Replicas({ replicas }: { replicas: readonly Replica[] }): JSX.Element {
  return (
    <div class="table-frame stacks" role="region" aria-label="Replicas" tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th>Replica</th>
            <th>Role</th>
            <th class="short">Up</th>
            <th>Memory</th>
            <th>Details</th>
          </tr>
        </thead>
        <tbody>
          {replicas.map((replica) => (
            <Line key={`${replica.service}${replica.replica}${replica.pid}`} replica={replica} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** `workspaceBytes` and the like are sizes. */
function detail(name: string, value: unknown): string {
  if (typeof value === "boolean") return value ? "yes" : "no";
  return typeof value === "number" && name.endsWith("Bytes") ? bytes(value) : String(value);
}

function Line({ replica }: { replica: Replica }): JSX.Element {
  const details = Object.entries(replica.details).filter(
    // The problems of channels stand next to their states.
    ([name, value]) => value !== "" && value !== 0 && name !== "channelProblems" && name !== "channelsDown",
  );
  return (
    <tr data-row tabIndex={-1}>
      <td>
        <div class="short">
          <span
            class={replica.ready ? "dot running" : "dot waiting"}
            role="img"
            aria-label={replica.ready ? "ready" : "not ready"}
          />{" "}
          <strong>{replica.replica}</strong>
        </div>
        <div class="muted">
          {replica.replica.startsWith(replica.service) ? "" : `${replica.service} · `}process {replica.pid} ·{" "}
          {replica.version}
        </div>
      </td>
      <td data-label="Role">
        <span class={replica.role === "leader" ? "tag good" : "tag"}>{replica.role}</span>
      </td>
      <td class="short" data-label="Up">
        {uptime(replica.uptimeSeconds)}
      </td>
      <td class="short" data-label="Memory">
        {Math.round(replica.rssMib)} MiB
      </td>
      <td>
        {details.map(([name, value]) => (
          <div key={name}>
            <span class="muted">{words(name)}</span> {detail(name, value)}
          </div>
        ))}
      </td>
    </tr>
  );
}
