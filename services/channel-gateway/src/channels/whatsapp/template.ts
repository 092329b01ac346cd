// Template messages, which the platform accepts after the 24-hour window of a person has ended. Pure.
import type { WhatsAppAccount } from "@parley/contracts";

export interface Template {
  name: string;
  language: string;
  /** It has one body parameter, for the text. */
  hasText: boolean;
}

/** The configured template; null without. */
export function templateOf(settings: WhatsAppAccount): Template | null {
  const { template: name, template_language: language, template_has_text: hasText } = settings;
  return name === undefined ? null : { name, language, hasText };
}

/** The longest parameter. */
const maxParameter = 1_024;

/** The message, and whether it contains the whole text. A parameter has one line and at most four spaces in a row. */
export function templateMessage(
  { name, language, hasText }: Template,
  text: string,
  isCut = false,
): { message: object; isWhole: boolean } {
  const line = text.replaceAll(/\s+/g, " ").trim();
  const isWhole = hasText && line.length <= maxParameter && !isCut;
  const parameter = isWhole
    ? line
    : `${line
        .slice(0, maxParameter - 2)
        .toWellFormed()
        .replace(/\ufffd$/, "")} …`;
  const components = hasText ? [{ type: "body", parameters: [{ type: "text", text: parameter }] }] : [];
  return { message: { type: "template", template: { name, language: { code: language }, components } }, isWhole };
}

/** The longest callback data, which the platform repeats in statuses of the message. */
const maxCallbackData = 512;

/**
 * The callback data of a message: its key, and with a template the beginning of its text, because the platform may report the end of the
 * window only later, to any replica.
 */
export function callbackData(key: string, text: string | null): string {
  return (text === null ? key : `${key}\n${text}`).slice(0, maxCallbackData).toWellFormed();
}

/** The callback data of a template. It has no text, so that a failed template is not followed by another one. */
export function templateData(key: string): string {
  return callbackData(`template:${key}`, null);
}

/** The text that a failed message had; null: nothing is sent instead of it. `isCut`: only its beginning is known. */
export function textOfCallback(data: string | undefined): { key: string; text: string; isCut: boolean } | null {
  const [, key, text] = /^([^\n]*)\n([^]+)$/.exec(data ?? "") ?? [];
  if (key === undefined || text === undefined) return null;
  return { key, text, isCut: data?.length === maxCallbackData };
}
