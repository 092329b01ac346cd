// Validates the settings of hooks at start: their environment variables must be set, and their programs must not be writable by the agent.
import { ConfigError, hookProgramProblem, type Environment, type ProgramLocations } from "@parley/chassis";
import { hookName, type HookSettings } from "@parley/contracts";

/** The values of the environment variables that hooks name, by variable name. */
export type HookVariables = ReadonlyMap<string, string>;

/** Reads the variables of all hooks. Throws ConfigError for a missing one: without its credential a hook would check no call. */
export function hookVariables(hooks: readonly HookSettings[], env: Environment): HookVariables {
  const variables = new Map<string, string>();
  for (const [index, hook] of hooks.entries()) {
    for (const name of hook.token_env === undefined ? hook.env : [hook.token_env]) {
      const value = env[name];
      if (value === undefined || value === "") {
        throw new ConfigError(
          `hook ${hookName(hook, index)} requires the environment variable ${name}: set it for the tool-runner`,
        );
      }
      variables.set(name, value);
    }
  }
  return variables;
}

/** Throws ConfigError for a command that the agent could change: it could then replace the hook that checks its calls. */
export function requireSafeHooks(hooks: readonly HookSettings[], locations: ProgramLocations): void {
  for (const [index, hook] of hooks.entries()) {
    const problem = hook.command === undefined ? undefined : hookProgramProblem(hook.command, locations);
    if (problem !== undefined) throw new ConfigError(`hook ${hookName(hook, index)} cannot be used: ${problem}`);
  }
}
