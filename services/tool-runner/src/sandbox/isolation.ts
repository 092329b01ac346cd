// Chooses the isolation of `exec`, once at start, from the setting and the result of a trial run.
// Pure; `probe.ts` performs the trial.
import { isOwnersWorkspace, type Containment, type IsolationLevel } from "@parley/contracts";

export const isolationSettings = ["auto", "bubblewrap", "container", "none", "off"] as const;
export type IsolationSetting = (typeof isolationSettings)[number];

/** Result of bubblewrap's trial run. */
export type ProbeResult =
  | { works: true; bwrap: string; disableUserNamespaces: boolean }
  | { works: false; reason: string };

export type Isolation =
  | {
      kind: "bubblewrap";
      bwrap: string;
      disableUserNamespaces: boolean;
      /** Number of entries in the list of allowed hosts; omitted: no network. */
      hosts?: number;
    }
  /** A container on a gVisor kernel. `internet`: commands share a network that reaches the internet. */
  | { kind: "gvisor"; internet?: true }
  | { kind: "container"; internet?: true }
  | { kind: "none" }
  /** `exec` fails every call with the reason and the remedy. */
  | { kind: "refused"; reason: string; advice: string }
  /** `exec` is not offered. */
  | { kind: "off" };

/** Which required levels each isolation satisfies. */
const holds = {
  none: ["none"],
  container: ["none", "container"],
  gvisor: ["none", "container", "gvisor"],
  // Commands see neither the service's files nor its network. Only gVisor provides a separate kernel.
  bubblewrap: ["none", "container", "bubblewrap"],
} as const satisfies Record<IsolationLevel, readonly IsolationLevel[]>;

/** Properties of this machine that affect the choice. */
interface HostFeatures {
  probe: ProbeResult;
  /** Whether its kernel is gVisor's. */
  gvisor: boolean;
  /** Whether the operator gave the tool-runner's container internet access; omitted: unknown. */
  internet?: boolean;
}

/** Refuses commands when the isolation found is below `minimum`. */
export function chooseIsolation(
  setting: IsolationSetting,
  host: HostFeatures,
  minimum: IsolationLevel = "none",
): Isolation {
  const found = find(setting, host);
  if (found.kind === "off" || found.kind === "refused") return found;
  const held: readonly IsolationLevel[] = [...holds[found.kind], ...(host.gvisor ? holds.gvisor : [])];
  if (held.includes(minimum)) return found;
  const reason = `at least ${minimum} is required, and this tool-runner provides ${found.kind}`;
  return { kind: "refused", reason, advice: minimumAdvice };
}

/**
 * The refusal for a command in a workspace other than the owner's, when the command could leave it: only bubblewrap hides the others.
 * Undefined when the command may run.
 */
export function leavesWorkspace(found: Isolation, workspaceId: string): (Isolation & { kind: "refused" }) | undefined {
  if (isOwnersWorkspace(workspaceId) || ["off", "refused", "bubblewrap"].includes(found.kind)) return undefined;
  const reason = `commands run here with isolation ${found.kind} and could read the owner's workspace`;
  return { kind: "refused", reason, advice: workspaceAdvice };
}

/** The refusal for a call that requires a higher level; undefined when the isolation is sufficient. */
export function missingIsolation(
  found: Isolation,
  minimum: IsolationLevel | undefined,
): (Isolation & { kind: "refused" }) | undefined {
  if (minimum === undefined || found.kind === "off" || found.kind === "refused") return undefined;
  const held: readonly IsolationLevel[] = holds[found.kind];
  if (held.includes(minimum)) return undefined;
  const reason = `this agent's commands require at least ${minimum}, and this tool-runner provides ${found.kind}`;
  return { kind: "refused", reason, advice: profileAdvice };
}

function find(setting: IsolationSetting, { probe, gvisor, internet }: HostFeatures): Isolation {
  if (setting === "container")
    return { kind: gvisor ? "gvisor" : "container", ...(internet === true ? { internet } : {}) };
  if (setting === "off" || setting === "none") return { kind: setting };
  if (!probe.works) {
    const advice = internet === true ? internetAdvice : bubblewrapAdvice;
    return { kind: "refused", reason: `bubblewrap does not work here (${probe.reason})`, advice };
  }
  return { kind: "bubblewrap", bwrap: probe.bwrap, disableUserNamespaces: probe.disableUserNamespaces };
}

/** gVisor reports this fixed kernel version in /proc/version. */
export function isGvisor(kernelVersion: string): boolean {
  return kernelVersion.startsWith("Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016");
}

/** Whether commands share a container network with internet access: what they read, they can send anywhere. */
export function hasInternet(isolation: Isolation): boolean {
  return (isolation.kind === "container" || isolation.kind === "gvisor") && isolation.internet === true;
}

/** In any container, a command shares the tool-runner's files, including its credentials. */
export function containmentOf(isolation: Isolation): Containment {
  if (isolation.kind === "bubblewrap") return "sandbox";
  const contained = (isolation.kind === "gvisor" || isolation.kind === "container") && !hasInternet(isolation);
  return contained ? "container" : "none";
}

/** One line for people: catalog, health report, log. */
export function describeIsolation(isolation: Isolation): string {
  if (isolation.kind === "refused") return `exec refused: ${isolation.reason}`;
  if (hasInternet(isolation)) return `${descriptions[isolation.kind]}; that network reaches the internet`;
  return isolation.kind === "bubblewrap" && isolation.hosts !== undefined
    ? descriptions.bubblewrap.replace("no network", `network: ${inHosts(isolation.hosts)}`)
    : descriptions[isolation.kind];
}

/** A short label for each result. */
export function isolationTag(isolation: Isolation): string {
  if (hasInternet(isolation)) return `${tags[isolation.kind]}, with internet access`;
  return isolation.kind === "bubblewrap" && isolation.hosts !== undefined
    ? tags.bubblewrap.replace("no network", `network: ${inHosts(isolation.hosts)}`)
    : tags[isolation.kind];
}

function inHosts(hosts: number): string {
  return hosts === 1 ? "1 listed host" : `${hosts} listed hosts`;
}

const descriptions = {
  bubblewrap: "bubblewrap: no network, read-only system, only the workspace is writable",
  gvisor: "gvisor: commands run in the tool-runner's container, on a separate kernel, and share its network and files",
  container: "container: commands run in the tool-runner's container and share its network and files",
  none: "none: commands run on this machine with the tool-runner's permissions",
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

/** The error for a refused command: the reason and the remedy. */
export function refusalText({ reason, advice }: { reason: string; advice: string }): string {
  return [`exec is refused: ${reason}.`, advice, "The file tools still work."].join("\n");
}

const bubblewrapAdvice = [
  "To enable it, the operator installs bubblewrap (`apt-get install bubblewrap`) and allows unprivileged user namespaces, or sets",
  '`isolation = "container"` under [tools.exec] in parley.toml where the container itself is the sandbox, or `isolation = "none"` to run commands without a sandbox.',
].join("\n");

/** Without the sandbox, commands would have internet access. The advice names the environment variable because it overrides the settings file. */
const internetAdvice = [
  "This tool-runner has internet access, and without bubblewrap commands would have it too. To enable it, the operator allows unprivileged user namespaces where the",
  "tool-runner runs, or gives commands internet access with `PARLEY_EXEC_ISOLATION=container` for the tool-runner (Compose: `PARLEY_WEB_EXEC_ISOLATION=container` in .env).",
].join("\n");

const workspaceAdvice = [
  'Only bubblewrap isolates commands of people other than the owner. To enable it, the operator sets `isolation = "bubblewrap"` under [tools.exec] in parley.toml, or shares the',
  "owner's workspace with users: `share_with_users = true` under [workspace].",
].join("\n");

const profileAdvice =
  "To enable it, the operator changes `min_isolation` of the profile in parley.toml, or runs the tool-runner where that isolation is available.";

const minimumAdvice =
  "To enable it, the operator changes `isolation` or `min_isolation` under [tools.exec] in parley.toml, or runs the tool-runner where that isolation is available.";
