export { createTelegram } from "./adapter.ts";
