// What the settings of hooks need of this service: the variables they name, and commands that the agent cannot change.
import { ConfigError, hookProgramProblem, type Environment, type OutsidePlace } from "@parley/chassis";
import { hookName, type HookSettings } from "@parley/contracts";

/** Values by their names. */
export type HookVariables = ReadonlyMap<string, string>;

/** Throws ConfigError for a variable that is named and not there: a guard without its key would guard nothing. */
export function hookVariables(hooks: readonly HookSettings[], env: Environment): HookVariables {
  const found = new Map<string, string>();
  for (const [index, hook] of hooks.entries()) {
    for (const name of hook.token_env === undefined ? hook.env : [hook.token_env]) {
      const value = env[name];
      if (value === undefined || value === "") {
        throw new ConfigError(`the hook ${hookName(hook, index)} needs the environment variable ${name}`);
      }
      found.set(name, value);
    }
  }
  return found;
}

/** Throws ConfigError for a command that the agent could change: a guard that the agent writes would guard nothing. */
export function requireSafeHooks(hooks: readonly HookSettings[], place: OutsidePlace): void {
  for (const [index, hook] of hooks.entries()) {
    const problem = hook.command === undefined ? undefined : hookProgramProblem(hook.command, place);
    if (problem !== undefined) throw new ConfigError(`the hook ${hookName(hook, index)} cannot be used: ${problem}`);
  }
}
