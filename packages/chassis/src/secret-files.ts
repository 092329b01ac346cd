// Secrets that may change while a service runs: the variable `NAME` is a value, `NAME_FILE` is the path of a file with the value, which is
// read again at each use.
import { readFileSync } from "node:fs";

import { errorMessage } from "@parley/contracts";

import type { Environment } from "./config.ts";
import { ConfigError } from "./errors.ts";

/** A secret: its value, or a function that returns the current one. */
export type Secret = string | (() => string);

/** The current value of a secret. */
export function currentValue(secret: Secret): string {
  return typeof secret === "function" ? secret() : secret;
}

export class SecretFiles {
  /** Every value that was read, for the log, which removes them. */
  readonly values: string[] = [];
  /** Called with the name of a variable after the content of its file has changed. */
  onChange: (variable: string) => void = () => undefined;
  /** Called once when a file can no longer be read; its last value stays in use. */
  onFailure: (variable: string, reason: string) => void = () => undefined;

  /**
   * The secret of a variable, or of its file if there is one. Undefined: neither is set, or the file does not exist, like that of an
   * optional key of a Kubernetes secret. Throws ConfigError when the file cannot be used.
   */
  find(variable: string, env: Environment): Secret | undefined {
    const value = env[variable] || undefined;
    if (value !== undefined) this.#remember(value);
    const path = env[`${variable}_FILE`] || undefined;
    return path === undefined ? value : (this.#open(variable, path) ?? value);
  }

  #open(variable: string, path: string): (() => string) | undefined {
    let last: string;
    try {
      last = contentOf(path);
    } catch (error) {
      if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
      throw new ConfigError(`environment: ${variable}_FILE: ${errorMessage(error)}`);
    }
    this.#remember(last);
    let readable = true;
    return () => {
      try {
        const current = contentOf(path);
        readable = true;
        if (current === last) return last;
        last = current;
        this.#remember(current);
        this.onChange(variable);
      } catch (error) {
        if (readable) this.onFailure(variable, errorMessage(error));
        readable = false;
      }
      return last;
    };
  }

  #remember(value: string): void {
    if (!this.values.includes(value)) this.values.push(value);
  }
}

function contentOf(path: string): string {
  const content = readFileSync(path, "utf8").trim();
  if (content === "") throw new Error(`${path} is empty`);
  return content;
}
