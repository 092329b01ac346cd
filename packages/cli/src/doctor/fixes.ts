// What there is to do about the parts of a cluster, in the words of where it runs: started here by `npm start`, or somewhere else,
// by whatever runs it there (docs/deploy.md). Pure.

import { startFix } from "./finding.ts";

export interface Fixes {
  /** Where to read what a service said; left out: all of them. */
  logs(service?: string): string;
  /** Gives a service other variables, e.g. `PARLEY_MODEL=<model>`. */
  set(variables: string, service: string): string;
  /** What follows a change of parley.toml. */
  readonly restart: string;
  /** Where commands are refused because no sandbox works. */
  readonly sandbox: string;
}

const here: Fixes = {
  logs: (service) =>
    service === undefined ? "parley logs --level error --since 1d" : `parley logs --service ${service} --since 10m`,
  set: (variables) => `${variables} ${startFix}`,
  restart: "start Parley again",
  sandbox: "apt-get install bubblewrap   (and allow unprivileged user namespaces)",
};

const there: Fixes = {
  logs: (service) =>
    service === undefined
      ? "where it runs: docker compose logs --since 24h   (or kubectl logs, for each deployment)"
      : `where it runs: docker compose logs --since 10m ${service}   (or kubectl logs deployment/${service} --since 10m)`,
  set: (variables, service) => `where it runs: give ${variables} to ${service}, and start it again; docs/deploy.md`,
  restart: "start the tool-runners again",
  sandbox:
    "where the tool-runner runs: allow unprivileged user namespaces, or choose another isolation; docs/isolation.md",
};

/** `elsewhere`: the cluster was named by its address. */
export function fixesFor(elsewhere: boolean): Fixes {
  return elsewhere ? there : here;
}
