// Which wall stands between `exec` and the machine: decided once at the start, from the setting and what a trial run showed.
// Pure; the trial itself is in `probe.ts`.

export const isolationSettings = ["auto", "bubblewrap", "container", "none", "off"] as const;
export type IsolationSetting = (typeof isolationSettings)[number];

/** What the trial run of bubblewrap showed. */
export type ProbeResult =
  | { works: true; bwrap: string; disableUserNamespaces: boolean }
  | { works: false; reason: string };

export type Isolation =
  | { kind: "bubblewrap"; bwrap: string; disableUserNamespaces: boolean }
  | { kind: "container" }
  | { kind: "none" }
  /** `exec` answers every call with the reason. */
  | { kind: "refused"; reason: string }
  /** There is no `exec`. */
  | { kind: "off" };

export function chooseIsolation(setting: IsolationSetting, probe: ProbeResult): Isolation {
  if (setting === "off" || setting === "none" || setting === "container") return { kind: setting };
  if (!probe.works) return { kind: "refused", reason: probe.reason };
  return { kind: "bubblewrap", bwrap: probe.bwrap, disableUserNamespaces: probe.disableUserNamespaces };
}

/** In a few words, for people: the catalog, the health report, the log. */
export function describeIsolation(isolation: Isolation): string {
  if (isolation.kind === "refused") return `exec refused: ${isolation.reason}`;
  return descriptions[isolation.kind];
}

/** In a word or two, for each result. */
export function isolationTag(isolation: Isolation): string {
  return tags[isolation.kind];
}

const descriptions = {
  bubblewrap: "bubblewrap: no network, read-only system, only the workspace is writable",
  container: "container: commands run in the tool-runner's container and share its network and files",
  none: "none: commands run on this machine with the tool-runner's rights",
  off: "exec is off",
} satisfies Record<Exclude<Isolation["kind"], "refused">, string>;

const tags = {
  bubblewrap: "bubblewrap (no network, read-only system)",
  container: "container only",
  none: "NONE (the command ran unprotected on this machine)",
  refused: "not run",
  off: "not run",
} satisfies Record<Isolation["kind"], string>;

/** What a refused command is answered with: why, and what makes it work. */
export function refusal(reason: string): string {
  return [
    `exec is refused: commands would have to run in a sandbox, and bubblewrap does not work here (${reason}).`,
    "To enable it, the operator installs bubblewrap (`apt-get install bubblewrap`) and allows unprivileged user namespaces, or sets",
    '`isolation = "container"` under [tools.exec] in parley.toml where the container itself is the sandbox, or `isolation = "none"` to run commands without one.',
    "The file tools work without it.",
  ].join("\n");
}
