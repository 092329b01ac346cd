// Serves `hook.run`: looks up the hook in this service's own settings, runs it and returns its result. The caller can only name a
// configured hook.
import type { Bus } from "@parley/bus";
import type { Chassis, Logger } from "@parley/chassis";
import { hookName, hookRun, WireError, type HookPayload, type HookResult, type HookSettings } from "@parley/contracts";
import { abortable } from "@parley/kit";
import { failed } from "./parse-response.ts";
import { runHookCommand } from "./command-hook.ts";
import { postHook } from "./http-hook.ts";
import type { HookVariables } from "./environment.ts";

export interface HookServiceDeps extends Pick<Chassis, "log" | "metrics"> {
  bus: Pick<Bus, "serve">;
  /** In the order of parley.toml: the index is part of a hook's name. */
  hooks: readonly HookSettings[];
  variables: HookVariables;
  /** The workspace, which the input contains as `cwd`. */
  workspace: string;
  /** The working directory of commands; never the workspace. */
  folder: string;
}

export interface HookService {
  /** Accepts no more hooks, lets running ones continue for `graceMs`, then ends them. */
  close(graceMs: number): Promise<void>;
}

export function serveHooks(deps: HookServiceDeps): HookService {
  const byName = new Map(deps.hooks.map((hook, index) => [hookName(hook, index), hook]));
  const stopping = new AbortController();
  const running = new Set<Promise<unknown>>();

  const carryOut = async (name: string, payload: HookPayload): Promise<HookResult> => {
    const hook = byName.get(name);
    if (hook?.event !== payload.hook_event_name) {
      throw new WireError("NOT_FOUND", `no hook named "${name}" for ${payload.hook_event_name} is configured here`);
    }
    const startedAt = performance.now();
    const work = run(deps, name, hook, payload, stopping.signal);
    running.add(work);
    try {
      const result = await work;
      const seconds = (performance.now() - startedAt) / 1_000;
      deps.metrics.observe("parley_hook_seconds", { outcome: result.outcome }, seconds);
      return result;
    } finally {
      running.delete(work);
    }
  };
  const served = deps.bus.serve(hookRun, async ({ hook, payload }) => carryOut(hook, payload));

  return {
    close: async (graceMs) => {
      served.close();
      const all = Promise.allSettled(running);
      await abortable(all, AbortSignal.timeout(graceMs)).catch(() => undefined);
      stopping.abort();
      await all;
    },
  };
}

/** Throws UNAVAILABLE when this service stops: the caller then tries another replica. */
async function run(
  { log, variables, workspace, folder }: HookServiceDeps,
  name: string,
  hook: HookSettings,
  payload: HookPayload,
  signal: AbortSignal,
): Promise<HookResult> {
  const timeoutMs = hook.timeout_seconds * 1_000;
  const input = JSON.stringify({ ...payload, cwd: workspace });
  let result: HookResult;
  if (hook.url !== undefined) {
    const token = hook.token_env === undefined ? undefined : variables.get(hook.token_env);
    result = await postHook({ url: hook.url, token, body: input, timeoutMs, signal });
  } else if (hook.command !== undefined) {
    result = await runCommand(log, name, {
      command: hook.command,
      cwd: folder,
      variables: Object.fromEntries([...variables].filter(([name]) => hook.env.includes(name))),
      input,
      timeoutMs,
      signal,
    });
  } else {
    result = failed("it has neither a command nor a URL");
  }
  if (signal.aborted) throw new WireError("UNAVAILABLE", "this tool-runner is stopping");
  return result;
}

async function runCommand(
  log: Logger,
  name: string,
  command: Parameters<typeof runHookCommand>[0],
): Promise<HookResult> {
  try {
    const { result, stderr } = await runHookCommand(command);
    if (stderr !== "") log.info({ hook: name, text: stderr }, "hook standard error captured");
    return result;
  } catch (error) {
    log.error({ err: error, hook: name }, "hook not started");
    return failed("it could not be started");
  }
}
