// The services and their replicas, the leader, and connections.
import type { JSX } from "preact";
import { call, type Result } from "../api/http.ts";
import { duration, words } from "../parts/format.ts";
import { Show, useLoad } from "../parts/load.tsx";

const everyMs = 3_000;

type Replica = Result<"clusterStatus">["replicas"][number];

export function Cluster(): JSX.Element {
  const loaded = useLoad(() => call<"clusterStatus">("GET", "/api/status"), [], everyMs);
  return (
    <div class="page">
      <header class="page-head">
        <h1>Cluster</h1>
      </header>
      <Show of={loaded}>
        {({ version, model, replicas }) => {
          const leader = replicas.find(({ role }) => role === "leader");
          return (
            <>
              <dl class="facts">
                <Fact name="Version" value={version} />
                <Fact name="Model" value={model === null ? "no leader responds" : `${model.provider}:${model.model}`} />
                <Fact name="Leader" value={leader?.replica ?? "none: a standby takes over within seconds"} />
                <Fact name="Epoch" value={String(leader?.epoch ?? "–")} />
              </dl>
              {model?.note != null && <p class="muted">Model: {model.note}</p>}
              <div class="table-frame" role="region" aria-label="Table" tabIndex={0}>
                <table>
                  <thead>
                    <tr>
                      <th>Replica</th>
                      <th>Role</th>
                      <th>Up</th>
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
            </>
          );
        }}
      </Show>
    </div>
  );
}

export function Fact({ name, value }: { name: string; value: string }): JSX.Element {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

function Line({ replica }: { replica: Replica }): JSX.Element {
  const details = Object.entries(replica.details).filter(([, value]) => value !== "" && value !== 0);
  return (
    <tr data-row tabIndex={-1}>
      <td>
        <span
          class={replica.ready ? "dot running" : "dot waiting"}
          role="img"
          aria-label={replica.ready ? "ready" : "not ready"}
        />{" "}
        <strong>{replica.replica}</strong>
        <div class="muted">
          {replica.service}, process {replica.pid}, {replica.version}
        </div>
      </td>
      <td>
        <span class={replica.role === "leader" ? "tag good" : "tag"}>{replica.role}</span>
      </td>
      <td>{duration(replica.uptimeSeconds * 1_000)}</td>
      <td>{Math.round(replica.rssMib)} MiB</td>
      <td>
        {details.map(([name, value]) => (
          <div key={name}>
            <span class="muted">{words(name)}</span>{" "}
            {typeof value === "boolean" ? (value ? "yes" : "no") : String(value)}
          </div>
        ))}
      </td>
    </tr>
  );
}
