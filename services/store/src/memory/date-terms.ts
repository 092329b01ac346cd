// Formats a date as people search for it ("what did we say on Monday, 8 May?"). Pure.

/** Locales of day and month names by PostgreSQL text search configuration; default: English. */
const locales: Readonly<Record<string, string>> = {
  arabic: "ar",
  armenian: "hy",
  basque: "eu",
  catalan: "ca",
  danish: "da",
  dutch: "nl",
  finnish: "fi",
  french: "fr",
  german: "de",
  greek: "el",
  hindi: "hi",
  hungarian: "hu",
  indonesian: "id",
  irish: "ga",
  italian: "it",
  lithuanian: "lt",
  nepali: "ne",
  norwegian: "no",
  portuguese: "pt",
  romanian: "ro",
  russian: "ru",
  serbian: "sr",
  spanish: "es",
  swedish: "sv",
  tamil: "ta",
  turkish: "tr",
  yiddish: "yi",
};

/** `day`: YYYY-MM-DD. For example "Monday, May 8, 2023". */
export function dayWords(day: string, language: string): string {
  const format = new Intl.DateTimeFormat([locales[language] ?? "en", "en"], { dateStyle: "full", timeZone: "UTC" });
  return format.format(new Date(`${day}T00:00:00Z`));
}
