// Runs the commands of `exec` on this replica, in the isolation chosen at start. Turns a command line into its output and exit.
// Time limits and the wording of results belong to the tool.
import { ConfigError } from "@parley/chassis";
import type { IsolationLevel } from "@parley/contracts";
import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { sandboxRoot } from "../workspace/paths.ts";
import { inDirectory, openDirectory, type ResolvedPath } from "../workspace/directory-handles.ts";
import type { Workspace } from "../workspace/workspace.ts";
import { bubblewrapArguments, sandboxUser, type BubblewrapOptions } from "./bubblewrap.ts";
import { findControlGroups, type ControlGroups } from "./cgroup.ts";
import { openEgress, type Egress, type EgressOptions } from "./egress/egress.ts";
import { hasAllowedHosts } from "./egress/hosts.ts";
import { egressArguments, egressEnvironment, egressTrial } from "./egress/sandbox-setup.ts";
import type { Confine } from "../search/ripgrep.ts";
import { writeEtcFiles } from "./etc-files.ts";
import { CommandOutput, type KeptOutput } from "./command-output.ts";
import { chooseIsolation, type Isolation, type IsolationSetting } from "./isolation.ts";
import { describeLimits, limitScript, type ExecLimits } from "./limits.ts";
import { onGvisor, probeBubblewrap } from "./probe.ts";
import { startCommand, type CommandEnd, type RunningCommand } from "./run-command.ts";
import { SecretMask, type ToolSecrets } from "./secrets.ts";

export interface ExecutorOptions {
  /** The owner's workspace; the trial run uses it. */
  workspace: Workspace;
  setting: IsolationSetting;
  /** Commands are refused below this level; omitted: no minimum applies beyond the setting. */
  minimum?: IsolationLevel;
  /** A path, or a name that is looked up on `searchPath`. */
  bwrap: string;
  searchPath: string;
  limits: ExecLimits;
  /** Whether the tool-runner's own network reaches the internet; omitted: unknown. */
  internet?: boolean;
  /** Hosts that commands may reach; omitted: none. */
  egress?: EgressOptions;
  /** Secrets for commands' variables, masked in their output; omitted: none. */
  secrets?: ToolSecrets;
  /** Folders that commands of the owner can read in the sandbox, by their name in `/mnt`; omitted: none. */
  mounts?: ReadonlyMap<string, string>;
}

interface Command {
  command: string;
  /** The only workspace that the command can see. */
  workspace: Workspace;
  /** A command of an owner's turn receives the secrets and sees the mounts. */
  isOwners: boolean;
  /** Working directory, inside the workspace. */
  place: ResolvedPath;
  /** Keeps standard input open. */
  interactive: boolean;
  /** Names the file that receives a long output. */
  callName: string;
  /** Receives all output as it arrives. */
  onOutput(chunk: Buffer): void;
}

/** A started command and its controls. */
export interface StartedCommand extends Pick<RunningCommand, "stop" | "signal" | "write"> {
  readonly ended: Promise<CommandResult>;
  /** Moves the command to the background: its further output is neither stored here nor limited. */
  detach(): void;
}

export interface CommandResult extends CommandEnd, KeptOutput {
  /** Limits that the kernel enforced: it killed or refused a process, and the command itself continued. */
  limitsReached: { memory: boolean; processes: boolean };
  /** One text per host whose connections were refused: the host and the reason. */
  refusedHosts?: readonly string[];
}

export interface Executor {
  readonly isolation: Isolation;
  /** What enforces each limit: `memory: cgroup; processes: cgroup; …`. */
  readonly limitedBy: string;
  /** Rejects when the command cannot be started. The caller must make sure that it ends. */
  start(command: Command): Promise<StartedCommand>;
  /** The paths of the mounts in the sandbox; empty without bubblewrap. */
  mountPaths: readonly string[];
  /** The command line that runs a program of the service on a read-only folder; undefined without bubblewrap. */
  confine: Confine;
}

/** Where the sandbox shows a program of the service. */
const programPath = "/tmp/program";

export const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** Throws ConfigError when the settings require a sandbox or a list of hosts that this machine cannot provide. */
export async function openExecutor(options: ExecutorOptions): Promise<Executor> {
  const files = await writeEtcFiles();
  const sandbox = {
    bwrap: findProgram(options.bwrap, options.searchPath),
    workspace: options.workspace.root,
    ...files,
    temporaryBytes: options.limits.maxTemporaryBytes,
  };
  const wanted = options.setting === "auto" || options.setting === "bubblewrap";
  const probe = wanted
    ? await probeBubblewrap({ ...sandbox, directory: sandboxRoot, env: environment(sandboxRoot) })
    : { works: false as const, reason: "not requested" };
  const host = { probe, gvisor: await onGvisor(), internet: options.internet === true };
  const chosen = chooseIsolation(options.setting, host, options.minimum);
  const { isolation, egress, problem } = await openWorkingEgress(chosen, options.egress, sandbox);
  if (options.setting === "bubblewrap" && isolation.kind === "refused") {
    throw new ConfigError(`tools.exec.isolation is "bubblewrap", but bubblewrap cannot be used: ${isolation.reason}`);
  }
  if (problem !== undefined) throw new ConfigError(`tools.exec.allow_hosts cannot be enforced: ${problem}.`);
  const runs = isolation.kind !== "off" && isolation.kind !== "refused";
  const groups = runs ? await findControlGroups({ cpu: options.limits.maxCpus !== undefined }) : undefined;
  return {
    isolation,
    limitedBy: describeLimits(options.limits, {
      counted: groups !== undefined,
      cpus: groups?.cpu === true,
      sandboxed: isolation.kind === "bubblewrap",
    }),
    mountPaths: isolation.kind === "bubblewrap" ? [...(options.mounts?.keys() ?? [])].map(mountPath) : [],
    start: (command) => begin(command, { ...options, isolation, groups, sandbox, openCommandEgress: egress }),
    confine: ({ folder, directory }, program) => {
      if (isolation.kind !== "bubblewrap") return undefined;
      const shown = { workspace: folder, readOnly: true, directory, env: {} };
      const { disableUserNamespaces } = isolation;
      const binds = ["--ro-bind", program, programPath];
      return [...bubblewrapArguments({ ...sandbox, ...shown, disableUserNamespaces, binds }), programPath];
    },
  };
}

type SandboxOptions = Pick<BubblewrapOptions, "bwrap" | "workspace" | "etc" | "seccomp" | "temporaryBytes">;

/**
 * Opens the egress proxy if hosts are allowed, and checks that a sandboxed command reaches it. Only a sandbox with its own network can
 * enforce a list of hosts. `problem`: why it cannot be enforced.
 */
async function openWorkingEgress(
  isolation: Isolation,
  options: EgressOptions | undefined,
  sandbox: SandboxOptions,
): Promise<{ isolation: Isolation; egress?: Egress; problem?: string }> {
  if (options === undefined || !hasAllowedHosts(options.settings)) return { isolation };
  if (isolation.kind === "off" || isolation.kind === "refused") return { isolation };
  if (isolation.kind !== "bubblewrap") return { isolation, problem: notHeld(isolation.kind) };
  const egress = await openEgress(options, sandbox.etc);
  const trialEgress = await egress("trial");
  try {
    const env = { ...environment(sandboxRoot), ...egressEnvironment() };
    const probe = await probeBubblewrap(
      { ...sandbox, directory: sandboxRoot, env, binds: trialEgress.binds },
      { argv: egressArguments(), trial: egressTrial },
    );
    if (!probe.works)
      return { isolation, problem: `the egress proxy cannot be reached from the sandbox (${probe.reason})` };
  } finally {
    await trialEgress.close();
  }
  const { hosts, privateHosts } = options.settings;
  return { isolation: { ...isolation, hosts: hosts.length + privateHosts.length }, egress };
}

function notHeld(kind: string): string {
  return `with isolation ${kind} commands share the tool-runner's network, so a list of hosts cannot be enforced; set isolation = "bubblewrap" under [tools.exec], or remove allow_hosts and allow_private_hosts`;
}

interface ExecContext extends ExecutorOptions {
  openCommandEgress: Egress | undefined;
  isolation: Isolation;
  groups: ControlGroups | undefined;
  sandbox: SandboxOptions;
}

async function begin(command: Command, context: ExecContext): Promise<StartedCommand> {
  const { limits, isolation } = context;
  const { workspace } = command;
  const id = randomUUID();
  // Released when the command cannot be started, and otherwise after its end.
  await using acquired = new AsyncDisposableStack();
  const output = new CommandOutput(workspace, command.callName, limits);
  acquired.defer(() => output.close());
  const group = await context.groups?.create(id, limits);
  acquired.defer(() => group?.remove());
  const directory = acquired.use(await openDirectory(command.place));
  const commandEgress = await context.openCommandEgress?.(command.callName);
  acquired.defer(() => commandEgress?.close());
  acquired.defer(await workspace.quota.watch((reason) => running.stop(reason)));
  const sandboxed = isolation.kind === "bubblewrap";
  const inside = command.place.relative === "." ? sandboxRoot : `${sandboxRoot}/${command.place.relative}`;
  const secrets: ToolSecrets = (command.isOwners ? context.secrets : undefined) ?? new Map();
  const mask = new SecretMask(secrets);
  const show = (chunk: Buffer) => {
    if (chunk.length === 0) return undefined;
    command.onOutput(chunk);
    return output.push(chunk);
  };
  const shell = findShell();
  const argv = [shell, "-c", limitScript(limits, sandboxed), shell, command.command];
  const sandbox = sandboxed
    ? bubblewrapArguments({
        ...context.sandbox,
        workspace: workspace.root,
        disableUserNamespaces: isolation.disableUserNamespaces,
        directory: inside,
        env: { ...environment(sandboxRoot), ...(commandEgress === undefined ? {} : egressEnvironment()) },
        binds: [...(command.isOwners ? mountArguments(context.mounts) : []), ...(commandEgress?.binds ?? [])],
        inherited: [...secrets.keys()],
      })
    : [];
  const before = commandEgress === undefined ? [] : egressArguments();
  const running = startCommand({
    argv: [...sandbox, ...before, ...argv],
    // The first process in the sandbox keeps its variables, where the command can read them: no path of the machine.
    cwd: sandboxed ? "/" : inDirectory(directory, "."),
    env: { ...environment(sandboxed ? sandboxRoot : workspace.root), ...Object.fromEntries(secrets), PARLEY_CALL: id },
    limits,
    interactive: command.interactive,
    group,
    sandboxed,
    mark: `PARLEY_CALL=${id}`,
    onOutput: (chunk) => show(mask.push(chunk)),
  });
  const held = acquired.move();
  const report = async (): Promise<CommandResult> => {
    await using _held = held;
    const end = await running.ended;
    await show(mask.end());
    const limitsReached = (await group?.limitsReached()) ?? { memory: false, processes: false };
    const refusedHosts = [...(commandEgress?.refused ?? [])];
    return {
      ...end,
      ...(await output.report()),
      limitsReached,
      ...(refusedHosts.length === 0 ? {} : { refusedHosts }),
    };
  };
  const { stop, signal, write } = running;
  return {
    ended: report(),
    stop,
    signal,
    write,
    detach: () => {
      output.stop();
      running.liftOutputLimit();
    },
  };
}

function mountPath(name: string): string {
  return `/mnt/${name}`;
}

function mountArguments(mounts: ReadonlyMap<string, string> = new Map()): string[] {
  return [...mounts].flatMap(([name, folder]) => ["--ro-bind", folder, mountPath(name)]);
}

/** The complete environment of a command: it inherits nothing of the service's. */
function environment(home: string): Record<string, string> {
  return { PATH: systemPath, HOME: home, LANG: "C.UTF-8", TERM: "dumb", TMPDIR: "/tmp", USER: sandboxUser.name };
}

function findShell(): string {
  return ["/bin/bash", "/usr/bin/bash"].find((path) => existsSync(path)) ?? "/bin/sh";
}

function findProgram(name: string, searchPath: string): string {
  if (name.includes("/")) return name;
  const folder = searchPath.split(delimiter).find((each) => each.startsWith("/") && existsSync(join(each, name)));
  return folder === undefined ? name : join(folder, name);
}
