export { createTelegram, TelegramSettingsError, type TelegramSecrets } from "./adapter.ts";
