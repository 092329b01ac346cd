// What a check gets and what it reports: its severity, a message and the exact fix for where the cluster runs.

import { asTyped } from "../io/command-name.ts";
import type { Answer, api } from "../cluster/api.ts";
import type { Answered } from "../cluster/gateway.ts";
import type { HomeView } from "../cluster/target.ts";
import type { Io } from "../io/io.ts";

type Severity = "ok" | "warning" | "error";

export interface Finding {
  readonly id: string;
  readonly severity: Severity;
  readonly message: string;
  /** A command to run, or one sentence; null when there is nothing to do. */
  readonly fix: string | null;
}

export function ok(id: string, message: string): Finding {
  return { id, severity: "ok", message, fix: null };
}

export function warning(id: string, message: string, fix: string): Finding {
  return { id, severity: "warning", message, fix: asTyped(fix) };
}

export function error(id: string, message: string, fix: string): Finding {
  return { id, severity: "error", message, fix: asTyped(fix) };
}

export const startFix = "npm start";

/** For checks that need a running cluster; the check `supervisor` reports once, as an error, that it does not run. */
export function notRunning(id: string): Finding {
  return warning(id, "not running", startFix);
}

export interface DoctorContext {
  readonly io: Io;
  readonly home: HomeView;
  /** --url or PARLEY_URL was given: local checks do not apply. */
  readonly explicitUrl: boolean;
  /** parley.toml, or null. */
  readonly settingsFile: string | null;
  /** Requested once for all checks; rethrows the error of that request. */
  status(): Promise<Answered<Answer<typeof api.status>>>;
  jobs(): Promise<Answer<typeof api.jobs>["jobs"]>;
}

export interface Check {
  readonly id: string;
  /** An error that it throws becomes the finding. */
  readonly run: (context: DoctorContext) => Promise<readonly Finding[]>;
}

export interface Fixes {
  /** How to read the logs of a service; default: of all services. */
  logs(service?: string): string;
  /** How to set variables of a service, e.g. `PARLEY_MODEL=<model>`. */
  set(variables: string, service: string): string;
  /** Without a model. */
  readonly model: string;
  /** For an account that the platform refuses, as `<channel>:<account>`. */
  account(name: string): string;
  /** For an account whose platform cannot be reached. */
  unreachable(name: string): string;
  /** The step after a change of parley.toml. */
  readonly restart: string;
  /** For commands that are refused because no sandbox works. */
  readonly sandbox: string;
}

const here: Fixes = {
  logs: (service) =>
    service === undefined ? "parley logs --level error --since 1d" : `parley logs --service ${service} --since 10m`,
  set: (variables) => `${variables} ${startFix}`,
  model: `parley onboard   (or ANTHROPIC_API_KEY=… ${startFix})`,
  account: (name) =>
    `parley channels add ${name}   (asks for its secrets again; an account in parley.toml: set its variables, and restart Parley)`,
  unreachable: (name) =>
    `parley channels test ${name}   (tries again; check that its server runs, its address in parley.toml, and network, proxy and firewall)`,
  restart: "restart Parley",
  sandbox: "apt-get install bubblewrap   (and allow unprivileged user namespaces)",
};

const there: Fixes = {
  logs: (service) =>
    service === undefined
      ? "where it runs: docker compose logs --since 24h   (or kubectl logs, for each deployment)"
      : `where it runs: docker compose logs --since 10m ${service}   (or kubectl logs deployment/${service} --since 10m)`,
  set: (variables, service) => `where it runs: set ${variables} for ${service} and restart it; docs/deploy.md`,
  model:
    "where it runs: set ANTHROPIC_API_KEY=… (or OPENAI_API_KEY=… PARLEY_MODEL=openai:<model>) for agent-core and restart it; docs/deploy.md",
  account: (name) =>
    `where it runs: correct the secret of ${name} for channel-gateway and restart it; parley channels test ${name} checks it`,
  unreachable: (name) =>
    `parley channels test ${name}   (tries again; check that its server runs, its address, and what channel-gateway may reach: proxy, network policy)`,
  restart: "restart the tool-runners",
  sandbox:
    "where the tool-runner runs: allow unprivileged user namespaces, or choose another isolation; docs/isolation.md",
};

/** `explicitUrl`: the gateway was named by its address. */
export function fixesFor(explicitUrl: boolean): Fixes {
  return explicitUrl ? there : here;
}

/** A path quoted for a shell. */
export function quoted(path: string): string {
  return /^[\w@%+=:,./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}
