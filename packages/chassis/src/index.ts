export { parseEnvironment, readBaseConfig, type BaseConfig, type Environment } from "./config.ts";
export { ConfigError, configExitCode } from "./errors.ts";
export { faultPoint } from "./fault.ts";
export { createLogger, type Logger } from "./logger.ts";
export { Counter, Gauge, Histogram, type ServiceMetrics } from "./metrics.ts";
export { runService } from "./run.ts";
export { openChassis, serveHealthReport, type Chassis, type RunningService } from "./service.ts";
export { loadSettings, parseSettings } from "./settings.ts";
