export {
  startTelegramPeer,
  type ApiCall,
  type Fault,
  type Said,
  type SentMessage,
  type TelegramPeer,
  type TelegramPeerOptions,
} from "./peers/telegram/index.ts";
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
