export { parseEnvironment, readBaseConfig, tlsFilesIn, type BaseConfig, type Environment } from "./config.ts";
export { configExitCode } from "./errors.ts";
export { faultPoint } from "./fault.ts";
export { grantKeyOf, grantSignature } from "./grant-signature.ts";
export { lineFields, logFields, type LogFields } from "./log-fields.ts";
export { createLogger, type Logger, type WriteFields } from "./logger.ts";
export { createMetrics, type ServiceMetrics } from "./metrics.ts";
export { metricCatalog, type LabelsOf, type MetricDefinition } from "./metric-catalog.ts";
export { exportCertificateExpiry } from "./certificates.ts";
export { runService } from "./run.ts";
export {
  openChassis,
  openLog,
  serveHealthReport,
  type Chassis,
  type RunningService,
  type StartContext,
} from "./service.ts";
export { requireSecret, withSecretsFolder } from "./secrets-folder.ts";
export { currentValue, SecretFiles, type Secret } from "./secret-files.ts";
export { Startup } from "./startup.ts";
export { capturesContent, genAi, genAiOperation, parleyAttribute } from "./tracing.ts";
export { activeTrace, failSpan, inSpan, linkTrace, explainLinkFailure, readTlsFiles, type TlsFiles } from "@parley/bus";
export * from "./settings-api.ts";
export { version } from "./version.ts";
