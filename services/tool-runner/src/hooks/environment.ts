// Validates the settings of hooks: their environment variables must be set, and the agent must not be able to change their commands.
import { ConfigError, hookProgramProblem, type Environment, type ProgramLocations } from "@parley/chassis";
import { hookName, type HookSettings } from "@parley/contracts";

/** Values of environment variables by name. */
export type HookVariables = ReadonlyMap<string, string>;

/** Throws ConfigError for a missing variable: a guard without its key would guard nothing. */
export function hookVariables(hooks: readonly HookSettings[], env: Environment): HookVariables {
  const found = new Map<string, string>();
  for (const [index, hook] of hooks.entries()) {
    for (const name of hook.token_env === undefined ? hook.env : [hook.token_env]) {
      const value = env[name];
      if (value === undefined || value === "") {
        throw new ConfigError(
          `hook ${hookName(hook, index)} requires the environment variable ${name}: set it for the tool-runner`,
        );
      }
      found.set(name, value);
    }
  }
  return found;
}

/** Throws ConfigError for a command that the agent could change: such a guard would guard nothing. */
export function requireSafeHooks(hooks: readonly HookSettings[], place: ProgramLocations): void {
  for (const [index, hook] of hooks.entries()) {
    const problem = hook.command === undefined ? undefined : hookProgramProblem(hook.command, place);
    if (problem !== undefined) throw new ConfigError(`hook ${hookName(hook, index)} cannot be used: ${problem}`);
  }
}
