export {
  Cleanup,
  openTestBus,
  startStoreStack,
  startTestNats,
  startTestPostgres,
  startTestRedis,
  temporaryFolder,
  testBaseConfig,
  type StoreStack,
} from "./stack.ts";
