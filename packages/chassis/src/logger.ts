// JSON logs on standard output, without secrets: each line is scrubbed as text, regardless of the field.

import { type Logger, pino } from "pino";

import { redactSecrets } from "./redact.ts";

export type { Logger };

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
