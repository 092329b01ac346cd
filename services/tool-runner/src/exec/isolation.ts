// Which wall stands between `exec` and the machine: decided once at the start, from the setting and what a trial run showed.
// Pure; the trial itself is in `probe.ts`.
import { mainWorkspaceId, type Containment, type IsolationLevel } from "@parley/contracts";

export const isolationSettings = ["auto", "bubblewrap", "container", "none", "off"] as const;
export type IsolationSetting = (typeof isolationSettings)[number];

/** What the trial run of bubblewrap showed. */
export type ProbeResult =
  | { works: true; bwrap: string; disableUserNamespaces: boolean }
  | { works: false; reason: string };

export type Isolation =
  | {
      kind: "bubblewrap";
      bwrap: string;
      disableUserNamespaces: boolean;
      /** How many entries the list of hosts has that commands reach; left out: no network. */
      hosts?: number;
    }
  /** A container whose kernel is gVisor. `internet`: commands share a network that reaches the internet. */
  | { kind: "gvisor"; internet?: true }
  | { kind: "container"; internet?: true }
  | { kind: "none" }
  /** `exec` answers every call with the reason, and with what makes it work. */
  | { kind: "refused"; reason: string; advice: string }
  /** There is no `exec`. */
  | { kind: "off" };

/** What a command may be required to have; each holds what is named beside it as well. */
const holds = {
  none: ["none"],
  container: ["none", "container"],
  gvisor: ["none", "container", "gvisor"],
  // Commands see neither the service's files nor its network. It is no other kernel: that is gVisor's alone.
  bubblewrap: ["none", "container", "bubblewrap"],
} as const satisfies Record<IsolationLevel, readonly IsolationLevel[]>;

/** What this machine is, besides what it can make. */
interface Surroundings {
  probe: ProbeResult;
  /** Its kernel is gVisor's. */
  gvisor: boolean;
  /** Whoever deployed the tool-runner gave its container a way to the internet; left out: nobody says so. */
  internet?: boolean;
}

/** `minimum`: with less, commands are refused. */
export function chooseIsolation(
  setting: IsolationSetting,
  surroundings: Surroundings,
  minimum: IsolationLevel = "none",
): Isolation {
  const found = find(setting, surroundings);
  if (found.kind === "off" || found.kind === "refused") return found;
  const held: readonly IsolationLevel[] = [...holds[found.kind], ...(surroundings.gvisor ? holds.gvisor : [])];
  if (held.includes(minimum)) return found;
  const reason = `at least ${minimum} is required, and here it would be ${found.kind}`;
  return { kind: "refused", reason, advice: minimumAdvice };
}

/**
 * Refused for a command of a workspace that is not the owner's where it could leave it: only bubblewrap shows it no other one.
 * Undefined where it runs.
 */
export function leavesWorkspace(found: Isolation, workspaceId: string): (Isolation & { kind: "refused" }) | undefined {
  if (workspaceId === mainWorkspaceId || ["off", "refused", "bubblewrap"].includes(found.kind)) return undefined;
  const reason = `commands have the isolation ${found.kind} here, with which they could read the owner's workspace`;
  return { kind: "refused", reason, advice: workspaceAdvice };
}

/** Refused for a call that needs more than there is; undefined where it has enough. */
export function lacking(
  found: Isolation,
  minimum: IsolationLevel | undefined,
): (Isolation & { kind: "refused" }) | undefined {
  if (minimum === undefined || found.kind === "off" || found.kind === "refused") return undefined;
  const held: readonly IsolationLevel[] = holds[found.kind];
  if (held.includes(minimum)) return undefined;
  const reason = `at least ${minimum} is required of this agent's commands, and here they have ${found.kind}`;
  return { kind: "refused", reason, advice: profileAdvice };
}

function find(setting: IsolationSetting, { probe, gvisor, internet }: Surroundings): Isolation {
  if (setting === "container")
    return { kind: gvisor ? "gvisor" : "container", ...(internet === true ? { internet } : {}) };
  if (setting === "off" || setting === "none") return { kind: setting };
  if (!probe.works) {
    const advice = internet === true ? internetAdvice : bubblewrapAdvice;
    return { kind: "refused", reason: `bubblewrap does not work here (${probe.reason})`, advice };
  }
  return { kind: "bubblewrap", bwrap: probe.bwrap, disableUserNamespaces: probe.disableUserNamespaces };
}

/** gVisor gives every program this version of a kernel, from /proc/version. */
export function isGvisor(kernelVersion: string): boolean {
  return kernelVersion.startsWith("Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016");
}

/** Commands in a container share a network with a way to the internet: what they read they can send anywhere. */
export function reachesInternet(isolation: Isolation): boolean {
  return (isolation.kind === "container" || isolation.kind === "gvisor") && isolation.internet === true;
}

/** In a container of any kind a command shares the files of the tool-runner, its credentials included. */
export function containmentOf(isolation: Isolation): Containment {
  if (isolation.kind === "bubblewrap") return "sandbox";
  const contained = (isolation.kind === "gvisor" || isolation.kind === "container") && !reachesInternet(isolation);
  return contained ? "container" : "none";
}

/** In a few words, for people: the catalog, the health report, the log. */
export function describeIsolation(isolation: Isolation): string {
  if (isolation.kind === "refused") return `exec refused: ${isolation.reason}`;
  if (reachesInternet(isolation)) return `${descriptions[isolation.kind]}; that network reaches the internet`;
  return isolation.kind === "bubblewrap" && isolation.hosts !== undefined
    ? descriptions.bubblewrap.replace("no network", `network: ${inHosts(isolation.hosts)}`)
    : descriptions[isolation.kind];
}

/** In a word or two, for each result. */
export function isolationTag(isolation: Isolation): string {
  if (reachesInternet(isolation)) return `${tags[isolation.kind]}, with the internet`;
  return isolation.kind === "bubblewrap" && isolation.hosts !== undefined
    ? tags.bubblewrap.replace("no network", `network: ${inHosts(isolation.hosts)}`)
    : tags[isolation.kind];
}

function inHosts(hosts: number): string {
  return hosts === 1 ? "1 listed host" : `${hosts} listed hosts`;
}

const descriptions = {
  bubblewrap: "bubblewrap: no network, read-only system, only the workspace is writable",
  gvisor:
    "gvisor: commands run in the tool-runner's container, on a kernel of its own, and share its network and files",
  container: "container: commands run in the tool-runner's container and share its network and files",
  none: "none: commands run on this machine with the tool-runner's rights",
  off: "exec is off",
} satisfies Record<Exclude<Isolation["kind"], "refused">, string>;

const tags = {
  bubblewrap: "bubblewrap (no network, read-only system)",
  gvisor: "container on gVisor",
  container: "container only",
  none: "NONE (the command ran unprotected on this machine)",
  refused: "not run",
  off: "not run",
} satisfies Record<Isolation["kind"], string>;

/** What a refused command is answered with: why, and what makes it work. */
export function refusal({ reason, advice }: { reason: string; advice: string }): string {
  return [`exec is refused: ${reason}.`, advice, "The file tools work without it."].join("\n");
}

const bubblewrapAdvice = [
  "To enable it, the operator installs bubblewrap (`apt-get install bubblewrap`) and allows unprivileged user namespaces, or sets",
  '`isolation = "container"` under [tools.exec] in parley.toml where the container itself is the sandbox, or `isolation = "none"` to run commands without one.',
].join("\n");

/** Without the wall commands would have the internet, and the variable that keeps it from them counts before the file of settings. */
const internetAdvice = [
  "This tool-runner reaches the internet, and without bubblewrap a command would too. To enable it, the operator allows unprivileged user namespaces where the",
  "tool-runner runs; or lets commands have the internet, with `PARLEY_EXEC_ISOLATION=container` for the tool-runner (Compose: `PARLEY_WEB_EXEC_ISOLATION=container` in .env).",
].join("\n");

const workspaceAdvice = [
  'Commands of people other than the owner need bubblewrap: the operator sets `isolation = "bubblewrap"` under [tools.exec] in parley.toml, or shares the',
  "owner's workspace with users: `share_with_users = true` under [workspace].",
].join("\n");

const profileAdvice =
  "To enable it, the operator changes `min_isolation` of the profile in parley.toml, or runs the tool-runner where that isolation works.";

const minimumAdvice =
  "To enable it, the operator changes `isolation` or `min_isolation` under [tools.exec] in parley.toml, or runs the tool-runner where that isolation works.";
