export { createTelegram, type TelegramSecrets } from "./adapter.ts";
