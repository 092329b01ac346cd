// `@parley/chassis/settings`: what programs need that read the settings and are no service. It loads neither the bus nor the libraries for
// metrics and traces, which add a quarter to the start time of a command.

export { ConfigError } from "./errors.ts";
export { redactSecrets } from "./redact.ts";
export { explainSettings, loadSettings, parseSettings, parseSettingsFile, type ExplainedSettings } from "./settings.ts";
export { flagsAsVariable } from "./settings-layers.ts";
export {
  hookProgramProblem,
  missingHookPrograms,
  unsandboxedProgramProblem,
  unsandboxedProgramProblems,
  outsideSearchPath,
  type ProgramLocations,
} from "./unsandboxed-program.ts";
