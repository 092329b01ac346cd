// The tool-runner's configuration. Only this module reads the environment.
import { basename, dirname, join, resolve } from "node:path";
import { isolationLevels, type IsolationLevel } from "@parley/contracts";
import { parseEnvironment, type BaseConfig, type Environment } from "@parley/chassis";
import { z } from "zod";
import type { CheckpointConfig } from "./snapshots/open.ts";
import { hookVariables, requireSafeHooks, type HookVariables } from "./hooks/environment.ts";
import { mcpConfig, type McpConfig } from "./mcp/server-config.ts";
import { programFolderOf } from "./sandbox/program-folder.ts";
import { execTimes, type ExecTimes } from "./tools/exec.ts";
import { fetchOptions, searchProvider, type WebFetchOptions } from "./web/settings.ts";
import type { EgressSettings } from "./sandbox/egress/hosts.ts";
import { isolationSettings, type IsolationSetting } from "./sandbox/isolation.ts";
import { toolSecrets, type ToolSecrets } from "./sandbox/secrets.ts";
import { mountedFolders, namedFolders } from "./workspace/named-folders.ts";
import { stateFolderOf } from "./workspace/paths.ts";
import type { QuotaRules } from "./workspace/quota.ts";

export interface Config extends BaseConfig {
  /** The folder in which the tools work. */
  workspace: string;
  /** The folders of `[workspace.folders]`, by the id of the workspace. */
  folders: ReadonlyMap<string, string>;
  /** The folders of `[workspace.mounts]`, by name. */
  mounts: ReadonlyMap<string, string>;
  /**
   * The service's own files, outside the workspace and shared by all replicas of it: locks, taint records, workspaces of people
   * other than the owner. No tool and no sandboxed command can access it.
   */
  stateFolder: string;
  quota: QuotaRules;
  isolation: IsolationSetting;
  /** Commands are refused below this level. */
  minIsolation: IsolationLevel;
  /** The deployment declares that its network reaches the internet: infra/docker/web.yml, k8s/components/web. */
  internet: boolean;
  /** Hosts that commands may reach. */
  egress: EgressSettings;
  /** Secrets of commands. */
  execSecrets: ToolSecrets;
  /** CPU time of one process of a command; undefined: no limit. */
  maxCpuSeconds: number | undefined;
  /** CPUs that one command may keep busy; undefined: all. */
  maxCpus: number | undefined;
  /** The bubblewrap program: a path, or a name on `searchPath`. */
  bwrap: string;
  searchPath: string;
  /** Names, not values, of the environment variables that are set. */
  environmentNames: ReadonlySet<string>;
  maxConcurrentCalls: number;
  execTimes: ExecTimes;
  /** Maximum number of concurrent background processes per session. */
  maxBackground: number;
  web: Omit<WebFetchOptions, "resolve">;
  /** The provider of `web_search`, or the reason why there is none. */
  search: ReturnType<typeof searchProvider>;
  checkpoints: CheckpointConfig;
  /** The working directory of hook commands: the folder of parley.toml, or an empty folder without that file. */
  hookFolder: string;
  /** The environment variables that hooks may read. */
  hookVariables: HookVariables;
  mcp: McpConfig;
  /** How long running calls may continue after the service began to stop. */
  drainGraceMs: number;
}

const Env = z.object({
  PARLEY_WORKSPACE: z.string().optional(),
  PARLEY_HOME: z.string().default(".parley"),
  PARLEY_CHECKPOINTS: z.string().optional(),
  PARLEY_STATE: z.string().optional(),
  PARLEY_CONFIG: z.string().optional(),
  PARLEY_EXEC_ISOLATION: z.enum(isolationSettings).optional(),
  PARLEY_EXEC_MIN_ISOLATION: z.enum(isolationLevels).optional(),
  PARLEY_INTERNET: z.enum(["true", "false"]).default("false"),
  PARLEY_BWRAP: z.string().default("bwrap"),
  PATH: z.string().default("/usr/bin:/bin"),
});

/** Throws ConfigError. */
export function readConfig(env: Environment, base: BaseConfig): Config {
  const own = parseEnvironment(Env, env);
  const { tools, checkpoints } = base.settings;
  const workspace = resolve(own.PARLEY_WORKSPACE ?? `${own.PARLEY_HOME}/workspace`);
  const stateFolder = resolve(own.PARLEY_STATE ?? stateFolderOf(workspace));
  const programFolder = programFolderOf(stateFolder);
  const configFolder = own.PARLEY_CONFIG === undefined ? null : dirname(resolve(own.PARLEY_CONFIG));
  const checkpointFolder = own.PARLEY_CHECKPOINTS ?? join(dirname(workspace), `.${basename(workspace)}-checkpoints`);
  const closed = [
    stateFolder,
    resolve(checkpointFolder),
    ...(own.PARLEY_CONFIG === undefined ? [] : [resolve(own.PARLEY_CONFIG)]),
  ];
  const folders = namedFolders(base.settings.workspace.folders, workspace, closed);
  const mounts = mountedFolders(base.settings.workspace.mounts, [workspace, ...folders.values()], closed);
  for (const folder of [workspace, ...folders.values()]) {
    requireSafeHooks(base.settings.hooks, { workspace: folder, configFolder });
  }
  return {
    ...base,
    workspace,
    folders,
    mounts,
    stateFolder,
    hookFolder: configFolder ?? programFolder,
    quota: {
      maxBytes: base.settings.workspace.max_bytes,
      minFreeBytes: base.settings.workspace.min_free_bytes,
    },
    checkpoints: {
      enabled: checkpoints.enabled,
      // Next to the workspace, where tools have no access.
      folder: checkpointFolder,
      maxFileBytes: checkpoints.max_file_bytes,
    },
    isolation: own.PARLEY_EXEC_ISOLATION ?? tools.exec.isolation,
    minIsolation: own.PARLEY_EXEC_MIN_ISOLATION ?? tools.exec.min_isolation,
    internet: own.PARLEY_INTERNET === "true",
    egress: { hosts: tools.exec.allow_hosts, privateHosts: tools.exec.allow_private_hosts },
    execSecrets: toolSecrets(tools.secrets.exec, env),
    maxCpuSeconds: tools.exec.max_cpu_seconds === 0 ? undefined : tools.exec.max_cpu_seconds,
    maxCpus: tools.exec.max_cpus === 0 ? undefined : tools.exec.max_cpus,
    bwrap: own.PARLEY_BWRAP,
    searchPath: own.PATH,
    environmentNames: new Set(Object.keys(env).filter((name) => (env[name] ?? "") !== "")),
    maxConcurrentCalls: tools.max_concurrent_calls,
    execTimes: execTimes(tools.exec),
    maxBackground: tools.exec.max_background,
    web: fetchOptions(tools.web),
    search: searchProvider(tools.web.search, env),
    hookVariables: hookVariables(base.settings.hooks, env),
    mcp: mcpConfig(base.settings.mcp, env, {
      workspace,
      folders: [...folders.values()],
      programFolder,
      searchPath: own.PATH,
    }),
    // Half of the time is for running calls, half for stopping and settling the rest.
    drainGraceMs: Math.floor(base.drainMs / 2),
  };
}
