// Suggested fixes for the parts of a cluster, depending on where it runs: started here by `npm start`, or deployed elsewhere
// (docs/deploy.md). Pure.

import { startFix } from "./finding.ts";

export interface Fixes {
  /** How to read the logs of a service; default: of all services. */
  logs(service?: string): string;
  /** How to set variables of a service, e.g. `PARLEY_MODEL=<model>`. */
  set(variables: string, service: string): string;
  /** The step after a change of parley.toml. */
  readonly restart: string;
  /** For commands that are refused because no sandbox works. */
  readonly sandbox: string;
}

const here: Fixes = {
  logs: (service) =>
    service === undefined ? "parley logs --level error --since 1d" : `parley logs --service ${service} --since 10m`,
  set: (variables) => `${variables} ${startFix}`,
  restart: "restart Parley",
  sandbox: "apt-get install bubblewrap   (and allow unprivileged user namespaces)",
};

const there: Fixes = {
  logs: (service) =>
    service === undefined
      ? "where it runs: docker compose logs --since 24h   (or kubectl logs, for each deployment)"
      : `where it runs: docker compose logs --since 10m ${service}   (or kubectl logs deployment/${service} --since 10m)`,
  set: (variables, service) => `where it runs: set ${variables} for ${service} and restart it; docs/deploy.md`,
  restart: "restart the tool-runners",
  sandbox:
    "where the tool-runner runs: allow unprivileged user namespaces, or choose another isolation; docs/isolation.md",
};

/** `elsewhere`: the cluster was named by its address. */
export function fixesFor(elsewhere: boolean): Fixes {
  return elsewhere ? there : here;
}
