// JSON logs on standard output, without secrets: each line is scrubbed as text, regardless of the field.

import { type Logger, pino } from "pino";

export type { Logger };

const secretPatterns = [
  /\bsk-[A-Za-z0-9_-]{12,}/g,
  /\bBearer\s+[A-Za-z0-9._~+/=-]{12,}/g,
  /\bxox[abprs]-[A-Za-z0-9-]{10,}/g,
  // A bot token of digits, a colon and letters, also inside a URL.
  /(?<!\d)\d{6,}:[A-Za-z0-9_-]{30,}/g,
  /(?<=:\/\/[^\s/:@]*:)[^\s/@]+(?=@)/g,
];

/** Replaces everything in a line that looks like a secret or is one of `secrets`. */
export function redactSecrets(line: string, secrets: readonly string[] = []): string {
  let clean = line;
  for (const secret of secrets) if (secret.length >= 8) clean = clean.replaceAll(secret, "[secret]");
  for (const pattern of secretPatterns) clean = clean.replace(pattern, "[secret]");
  return clean;
}

export interface LoggerOptions {
  service: string;
  replica: string;
  level: string;
  /** Values that must never appear. */
  secrets?: readonly string[];
  /** Fields added to every line, evaluated when the line is written. */
  fields?: () => object;
  write?: (line: string) => void;
}

export function createLogger(options: LoggerOptions): Logger {
  const write = options.write ?? ((line: string) => process.stdout.write(line));
  return pino(
    {
      level: options.level,
      base: { service: options.service, replica: options.replica },
      timestamp: pino.stdTimeFunctions.isoTime,
      ...(options.fields === undefined ? {} : { mixin: options.fields }),
      formatters: { level: (label) => ({ level: label }) },
    },
    { write: (line: string) => write(redactSecrets(line, options.secrets)) },
  );
}
