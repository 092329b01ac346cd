// Fetches the cluster status: the replicas' reports through a gateway, combined with the state of the local supervisor.

import type { ReplicaReport } from "@parley/contracts";
import type { ReplicaState } from "@parley/local";

import { api, type Answer } from "./api.ts";
import { Gateway, GatewayUnreachableError } from "./gateway.ts";
import type { Target } from "./target.ts";

export interface ReplicaRow {
  readonly service: string;
  readonly replica: string;
  readonly pid: number | null;
  /** `down`: the supervisor runs it but it does not answer. `unknown`: there is no report. */
  readonly role: ReplicaReport["role"] | "down" | "unknown";
  readonly epoch: number | null;
  readonly ready: boolean;
  readonly uptimeSeconds: number | null;
  readonly rssMib: number | null;
  readonly version: string | null;
  /** Number of restarts by the supervisor; null without a local supervisor. */
  readonly restarts: number | null;
  readonly details: ReplicaReport["details"];
}

export interface StatusView {
  /** False: no gateway answers, and the view contains only the supervisor's data. */
  readonly reachable: boolean;
  readonly healthy: boolean;
  /** Descriptions of the problems found. */
  readonly problems: readonly string[];
  readonly urls: readonly string[];
  readonly version: string | null;
  readonly model: { readonly provider: string; readonly model: string; readonly note: string | null } | null;
  /** Queued messages and running turns of the 200 most recently used sessions. */
  readonly queue: { readonly waiting: number; readonly running: number } | null;
  readonly replicas: readonly ReplicaRow[];
}

/** Throws CliError if neither a gateway nor a supervisor is available. */
export async function fetchStatus(target: Target): Promise<StatusView> {
  const gateway = new Gateway(target);
  const supervised = (): readonly ReplicaState[] => target.home.state?.replicas ?? [];
  try {
    const [status, sessions] = await Promise.all([
      gateway.run(api.status),
      gateway.run(api.sessions, { limit: 200 }).catch(() => null),
    ]);
    const queue =
      sessions === null
        ? null
        : {
            waiting: sessions.sessions.reduce((sum, { queued }) => sum + queued, 0),
            running: sessions.sessions.filter(({ runningTurnId }) => runningTurnId !== null).length,
          };
    return viewOf(status, queue, supervised(), target.urls());
  } catch (error) {
    if (!(error instanceof GatewayUnreachableError) || target.home.state === null) throw error;
    return supervisorView(supervised(), target.urls(), error.message);
  }
}

/** Combines the replicas that answer with those that the supervisor runs, and derives the problems. Pure. */
export function viewOf(
  { version, model, replicas }: Answer<typeof api.status>,
  queue: StatusView["queue"],
  supervised: readonly ReplicaState[],
  urls: readonly string[],
): StatusView {
  const rows: ReplicaRow[] = replicas.map((report) => ({
    ...report,
    restarts: supervised.find(({ name }) => name === report.replica)?.restarts ?? null,
  }));
  const silent = supervised.filter(({ name }) => !replicas.some(({ replica }) => replica === name));
  const all = [...rows, ...silent.map(supervisedRow)].toSorted(
    (a, b) => a.service.localeCompare(b.service) || a.replica.localeCompare(b.replica),
  );
  const problems = all.flatMap((row) => {
    if (row.role === "down") return [`${row.replica} does not answer`];
    return row.ready ? [] : [`${row.replica} is not ready`];
  });
  const broken = rows.flatMap(({ details }) => details["channelProblems"] ?? []);
  problems.push(...new Set(broken.map((each) => `channels: ${String(each)}`)));
  const leaders = rows.filter(({ role }) => role === "leader");
  if (leaders.length === 0) problems.push("no agent-core is the leader: messages are stored but not processed");
  if (leaders.length > 1) problems.push(`${leaders.length} agent-cores report that they are the leader`);
  return { reachable: true, healthy: problems.length === 0, problems, urls, version, model, queue, replicas: all };
}

function supervisorView(supervised: readonly ReplicaState[], urls: readonly string[], why: string): StatusView {
  return {
    reachable: false,
    healthy: false,
    problems: [why],
    urls,
    version: null,
    model: null,
    queue: null,
    replicas: supervised.map((state) => ({
      ...supervisedRow(state),
      role: state.process === null ? "down" : "unknown",
      ready: state.ready,
    })),
  };
}

function supervisedRow({ service, name, process, restarts, startedAt }: ReplicaState): ReplicaRow {
  const uptimeMs = process === null || startedAt === null ? null : Date.now() - Date.parse(startedAt);
  return {
    service,
    replica: name,
    pid: process?.pid ?? null,
    role: "down",
    epoch: null,
    ready: false,
    uptimeSeconds: uptimeMs === null ? null : Math.round(uptimeMs / 1_000),
    rssMib: null,
    version: null,
    restarts,
    details: {},
  };
}
