// What hooks may know of this service's environment: the variables their settings name, and nothing else. Pure.
import { ConfigError, type Environment } from "@parley/chassis";
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
