export { createIrc, type IrcSecrets, type IrcTuning } from "./adapter.ts";
