// Decides which configured programs may run outside of the sandbox: only those whose code the agent cannot write. It handles MCP servers
// and command hooks, not commands of the tool `exec`.

import { existsSync, realpathSync } from "node:fs";
import { basename, dirname, isAbsolute, join, relative, resolve } from "node:path";

import { hookName, type ParleySettings } from "@parley/contracts";

export interface UnsandboxedProgram {
  command: string;
  args: readonly string[];
  /** Working directory; null: an empty folder of the service. */
  cwd: string | null;
}

export interface ProgramLocations {
  /** The workspace's folder. */
  workspace: string;
  /** The folder of parley.toml, where hooks run; null: there is no file. */
  configFolder: string | null;
}

/** Programs that run code named by their first argument and load modules, packages or settings from their working directory. */
const interpreters =
  /^(python|pypy|node|nodejs|ruby|perl|php|lua|luajit|Rscript|java|groovy|tsx|ts-node|pwsh|sh|bash|dash|zsh|ksh|fish|npx|pnpx|bunx|uvx)[\d.]*$/;
/** The same, after a subcommand or a value. */
const wrappers =
  /^(deno|bun|busybox|make|env|sudo|nice|nohup|setsid|timeout|xargs|npm|pnpm|yarn|corepack|uv|pip|pipx|poetry|pdm|hatch|rye|conda|mamba|mise|cargo|go|dotnet|gradle|mvn)[\d.]*$/;

/**
 * Why a program may not run: the agent could change what it runs. Undefined when its settings show no problem; code that a program loads
 * on its own is not checked.
 */
export function unsandboxedProgramProblem(
  { command, args, cwd }: UnsandboxedProgram,
  workspace: string,
): string | undefined {
  const isInside = insideOf(workspace);
  const name = basename(command);
  // Arguments that may name code: the options before it count as well.
  const codeWords = interpreters.test(name) ? 1 : wrappers.test(name) ? 2 : 0;
  const isPath = command.includes("/");
  if (isPath && !isAbsolute(command) && cwd === null)
    return `"${command}" is a relative path: use the program's absolute path, or a name that is found on PATH`;
  if (isPath && isInside(resolve(cwd ?? "/", command)))
    return `"${command}" is in the workspace, where the agent can change it: use a program elsewhere`;
  if (cwd !== null && isInside(cwd)) {
    const rule = `in a folder of the workspace (${cwd})`;
    if (!isAbsolute(command))
      return `"${command}" may not run ${rule}: only a program with an absolute path may run there`;
    if (codeWords > 0) return `"${command}" may not run ${rule}: it runs code that it finds there. Remove cwd`;
    const path = args.find(isRelativePath);
    if (path !== undefined) return `"${command}" may not run ${rule} with the relative path "${path}"`;
  }
  let words = 0;
  for (const arg of args) {
    if (words >= codeWords) return undefined;
    if (!arg.startsWith("-")) words += 1;
    const path = arg.startsWith("-") ? arg.slice(arg.indexOf("=") + 1) : arg;
    const isFile = path.includes("/") && !path.includes("://") && !path.startsWith("-");
    if (isFile && (isAbsolute(path) || cwd !== null) && isInside(resolve(cwd ?? "/", path)))
      return `"${command}" would run "${path}", which is in the workspace, where the agent can change it`;
  }
  return undefined;
}

/** The words of a command line; what the shell would do with them is not considered. */
function wordsOf(line: string): string[] {
  return [...line.matchAll(/"([^"]*)"|'([^']*)'|([^\s"';&|<>()]+)/g)].map(
    ([, double, single, bare]) => double ?? single ?? bare ?? "",
  );
}

/** Hooks whose program, or the script of its interpreter, is a path without a file on this machine. Each of their runs fails. */
export function missingHookPrograms(
  hooks: ParleySettings["hooks"],
  configFolder: ProgramLocations["configFolder"],
): string[] {
  return hooks.flatMap((hook, index) => {
    const [command = "", argument = ""] = wordsOf(hook.command ?? "");
    const named = interpreters.test(basename(command)) ? [command, argument] : [command];
    const missing = named
      .filter((word) => word.includes("/") && !/[$`*?~]/.test(word))
      .map((word) => resolve(configFolder ?? "/", word))
      .find((path) => !existsSync(path));
    if (missing === undefined) return [];
    const effect = hook.on_failure === "closed" ? "fails and refuses what it guards" : "fails";
    return [`The hook ${hookName(hook, index)} ${effect}: there is no file ${missing}`];
  });
}

/** The problem of a hook's command line, judged by its first words. */
export function hookProgramProblem(line: string, { workspace, configFolder }: ProgramLocations): string | undefined {
  const [command = "", ...args] = wordsOf(line);
  // The shell reads nothing from its working directory. Without parley.toml, hooks run in an empty folder, where no relative path exists.
  return command === "" ? undefined : unsandboxedProgramProblem({ command, args, cwd: configFolder ?? "/" }, workspace);
}

/** All configured programs that may not run, with the reason. */
export function unsandboxedProgramProblems(
  { mcp, hooks }: ParleySettings,
  place: ProgramLocations,
): { setting: string; problem: string }[] {
  const servers = Object.entries(mcp.servers).flatMap(([name, { enabled, command, args, cwd }]) => {
    if (!enabled || command === undefined) return [];
    const where = cwd === undefined ? null : resolve(place.workspace, cwd);
    const problem = unsandboxedProgramProblem({ command, args, cwd: where }, place.workspace);
    return problem === undefined ? [] : [{ setting: `mcp.servers.${name}`, problem }];
  });
  const guards = hooks.flatMap((hook, index) => {
    const problem = hook.command === undefined ? undefined : hookProgramProblem(hook.command, place);
    return problem === undefined ? [] : [{ setting: `the hook ${hookName(hook, index)}`, problem }];
  });
  return [...servers, ...guards];
}

/** The folders of a search path that are allowed for programs outside of the sandbox: absolute and not in the workspace. */
export function outsideSearchPath(searchPath: string, workspace: string): string {
  const isInside = insideOf(workspace);
  return searchPath
    .split(":")
    .filter((folder) => isAbsolute(folder) && !isInside(folder))
    .join(":");
}

function isRelativePath(arg: string): boolean {
  const path = arg.startsWith("-") ? arg.slice(arg.indexOf("=") + 1) : arg;
  if (path.startsWith("-") || isAbsolute(path) || path.includes("://")) return false;
  return path.startsWith(".") || path.includes("/") || /\.\w+$/.test(path);
}

/** Compares the path itself and its resolved links. */
function insideOf(folder: string): (path: string) => boolean {
  const roots = [resolve(folder), realPath(resolve(folder))];
  const below = (path: string) =>
    roots.some((root) => {
      const way = relative(root, path);
      return way === "" || (way !== ".." && !way.startsWith("../") && !isAbsolute(way));
    });
  return (path) => below(path) || below(realPath(path));
}

/** Resolves links in the existing part of a path. */
function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    const above = dirname(path);
    return above === path ? path : join(realPath(above), basename(path));
  }
}
