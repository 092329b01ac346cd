// JSON logs on standard output, without secrets: each line is scrubbed as text, regardless of the field.

import { pino } from "pino";

import type { LogFields, OnlyLogFields } from "./log-fields.ts";

import { redactSecrets } from "./redact.ts";

/** Writes one line with these fields. */
export interface WriteFields {
  <F extends LogFields>(fields: OnlyLogFields<F>, message: string): void;
}

interface Write extends WriteFields {
  (message: string): void;
}

/** Writes one line per call, with fields of the dictionary only. */
export interface Logger extends Readonly<Record<"trace" | "debug" | "info" | "warn" | "error" | "fatal", Write>> {
  /** A logger that adds these fields to each line. */
  child<F extends LogFields>(fields: OnlyLogFields<F>): Logger;
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
  /** Receives each line after it was written. */
  onLine?: (line: string) => void;
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
    {
      write: (line: string) => {
        const shown = redactSecrets(line, options.secrets);
        write(shown);
        options.onLine?.(shown);
      },
    },
  );
}
