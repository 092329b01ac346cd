export { createIrc, IrcSettingsError, type IrcSecrets, type IrcTuning } from "./adapter.ts";
