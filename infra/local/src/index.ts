// @parley/local: private servers and a supervised cluster on one machine.

export { LocalError, type LocalErrorCode } from "./errors.ts";
export { debianBinary, debianLibrary, hasApt, type DebianBinary } from "./servers/debian.ts";
export { suitePrograms, type SuiteMounts, type SuiteOptions, type SuitePrograms } from "./servers/debian-suite.ts";
export { npmPackage, type NpmPackage } from "./servers/npm-package.ts";
export { missingServers, onPath, sharedCacheDir } from "./servers/locate.ts";
export { findChromium } from "./test-peers.ts";
export { startNats, type NatsOptions, type NatsServer, type NatsUser } from "./servers/nats.ts";
export { freePort } from "./servers/ports.ts";
export {
  databaseStatements,
  ownerRole,
  startPostgres,
  storeRole,
  type PostgresOptions,
  type PostgresServer,
  type PostgresUrls,
} from "./servers/postgres.ts";
export type { LogSink, ServerExit, ServerProcess } from "./servers/process.ts";
export { startRedis, type RedisOptions, type RedisServer } from "./servers/redis.ts";
export { findConfig } from "./config-file.ts";
export { isModelConfigured } from "./configured-model.ts";
export type { Environment } from "./environment.ts";
export { openHome, readRunningState, sha256, type ClusterState, type ReplicaState } from "./home.ts";
export { requestEnd } from "./processes.ts";
export { natsUsers, type GivenServers, type SupervisedServer } from "./supervisor/backing-services.ts";
export { isReadByService, keepSecrets, readSecrets, secretsPath, withSecrets } from "./secrets.ts";
export type { ReplicaHandle, ReplicaOptions } from "./supervisor/replica.ts";
export { repositoryPrograms } from "./supervisor/program.ts";
export { npmPackages, suitePackages } from "./test-peers.ts";
export { workspaceFolders } from "./workspace.ts";
export { startLocalCluster, type Cluster, type LocalClusterOptions } from "./local-cluster.ts";
