export { createIrc, type IrcTuning } from "./adapter.ts";
