// Projections: the events of a session (packages/contracts, events.ts) in the formats of other protocols. Pure.
export { AnswerText, positionAfter, remainder } from "./answer-text.ts";
export { sdkMessages, SdkMessages, type SdkOptions, type TimedEvent } from "./sdk-messages.ts";
export { type Denial, Denials } from "./denials.ts";
export { permissionModeNames, readPermissionMode, sdkModeOf } from "./sdk-modes.ts";
export { SdkSubagentMessages, type SubagentOptions } from "./sdk-subagent.ts";
export { resultSubtypes, type SdkBody, type SdkInit, type SdkMessage } from "./sdk-types.ts";
export { SimpleEvents, type SimpleEvent } from "./simple-events.ts";
export type { OutputRule } from "./visible-text.ts";
export { StreamFrames, type StreamFrame } from "./stream-frames.ts";
