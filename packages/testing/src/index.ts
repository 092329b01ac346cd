export { missingAlertmanager, startAlertmanager, type Alertmanager } from "./peers/alertmanager.ts";
export { startIi, type Ii, type IiLine, type IiOptions } from "./peers/ii.ts";
export { startInspIrcd, type InspIrcd, type InspIrcdOptions } from "./peers/inspircd.ts";
export {
  startTelegramPeer,
  type ApiCall,
  type Fault,
  type ReceivedText,
  type SentMessage,
  type TelegramPeer,
  type TelegramPeerOptions,
} from "./peers/telegram/index.ts";
export {
  startWhatsAppPeer,
  type WhatsAppMessage,
  type WhatsAppPeer,
  type WhatsAppPeerOptions,
} from "./peers/whatsapp/index.ts";
export {
  startSlackPeer,
  type SlackCall,
  type SlackDelivery,
  type SlackFault,
  type SlackMessage,
  type SlackPeer,
  type SlackPeerOptions,
  type SlackMessageOptions,
} from "./peers/slack/index.ts";
export {
  buttonsOf,
  startDiscordPeer,
  type DiscordFault,
  type DiscordInteraction,
  type DiscordMessage,
  type DiscordPeer,
  type DiscordPeerOptions,
} from "./peers/discord/index.ts";
export { MatrixPerson, type MatrixEvent } from "./peers/synapse/person.ts";
export { type NioPerson } from "./peers/synapse/nio.ts";
export { checkoutPrograms, cliPrograms } from "./cli-programs.ts";
export { untilServersReady } from "./mcp-servers.ts";
export { servicePrograms, suiteBundles } from "./service-programs.ts";
export { startFaultyProxy, type FaultyProxy } from "./peers/synapse/faulty-proxy.ts";
export { missingSynapse, startSynapse, type Synapse } from "./peers/synapse/index.ts";
export {
  startSignalPeer,
  type SaidMessage,
  type SignalFault,
  type SignalMessage,
  type SignalPeer,
  type SignalPeerOptions,
} from "./peers/signal/index.ts";
export { prepareSignalCli, startSignalCli, type SignalCli, type SignalCliDaemon } from "./peers/signal/real-daemon.ts";
export { startMailPeer, type MailPeer, type MailPeerOptions } from "./peers/email/index.ts";
export { missingOpenSmtpd, startOpenSmtpd, type OpenSmtpd } from "./peers/email/opensmtpd.ts";
export { startSpeechPeer, type SpeechOrder, type SpeechPeer } from "./peers/speech.ts";
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
export { pollUntil, untilValue } from "./until.ts";
export { startTcpLink, type TcpLink } from "./tcp-link.ts";
export { startTlsFront, tlsFixtures } from "./tls.ts";
export { startOtlpCollector, type CollectedSpan, type OtlpCollector } from "./otlp-collector.ts";
export { apiClient, type ApiClient } from "./client.ts";
export { makeDeadLetter } from "./dead-letter.ts";
export { addSessions, fillSession } from "./long-session.ts";
export { startTestCluster, type TestCluster, type TestClusterOptions } from "./cluster.ts";
export {
  callItem,
  messageItem,
  reasoningItem,
  startResponsesServer,
  type ResponsesItem,
  type ResponsesServer,
} from "./model/responses-server.ts";
export { startScriptedModel, type ModelFault, type ScriptedModel } from "./model/scripted-model.ts";
export { checkOrder, startStrictEndpoint, type StrictEndpoint } from "./model/strict-endpoint.ts";
export { createTestSigner, openTestCall, type TestCall, type TestSigner } from "./grants.ts";
export { conformanceCases } from "./channels/conformance.ts";
export type { ChannelSubject, Outcome, ReceivedMessage, SeenMessage, SendOptions } from "./channels/subject.ts";
