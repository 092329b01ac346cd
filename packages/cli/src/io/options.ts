// Options as data: parsing, help and completion all use the same table.

import { UsageError } from "./io.ts";

export interface OptionSpec {
  readonly type: "string" | "boolean";
  readonly short?: string | undefined;
  /** Placeholder for the value in the help: `<id>`. */
  readonly value?: string;
  readonly about: string;
  /** The allowed values, if there are few. */
  readonly choices?: readonly string[] | undefined;
}
export type OptionTable = Readonly<Record<string, OptionSpec>>;

/** An option without a value. */
export function flag(about: string, short?: string): OptionSpec {
  return { type: "boolean", about, short };
}

/** An option with a value; `value` is its placeholder in the help. */
export function text(value: string, about: string, choices?: readonly string[]): OptionSpec {
  return { type: "string", value, about, choices };
}

const homeFolder = text("<folder>", "the data folder (PARLEY_HOME; default: .parley here or in a parent folder)");

/** The address of the cluster and the credentials. */
export const targetOptions: OptionTable = {
  home: homeFolder,
  url: text("<url>", "the gateway (PARLEY_URL; default: recorded in the data folder)"),
  "token-file": text("<file>", "file with the token (or PARLEY_TOKEN; default: <home>/token)"),
};

/** Only the data folder. */
export const homeOption: OptionTable = { home: homeFolder };
export const jsonOption: OptionTable = { json: flag("print JSON for programs") };
export const helpOption: OptionTable = { help: flag("show this help", "h") };

/** Options given on a command line, by name. */
export class OptionValues {
  readonly #given: readonly (readonly [string, string | true])[];
  readonly #values: ReadonlyMap<string, string | true>;

  constructor(values: Iterable<readonly [string, string | true]>) {
    this.#given = [...values];
    this.#values = new Map(this.#given);
  }

  has(name: string): boolean {
    return this.#values.has(name);
  }

  text(name: string): string | undefined {
    const value = this.#values.get(name);
    return typeof value === "string" ? value : undefined;
  }

  /** All values of a repeatable option. */
  texts(name: string): string[] {
    return this.#given.flatMap(([each, value]) => (each === name && typeof value === "string" ? [value] : []));
  }

  /** A whole number in a range. Throws UsageError, which calls it `what`. */
  number(name: string, what: string, { min = 1, max = 999_999_999 } = {}): number | undefined {
    const given = this.text(name);
    if (given === undefined) return undefined;
    const number = /^\d{1,9}$/.test(given) ? Number(given) : Number.NaN;
    if (number >= min && number <= max) return number;
    throw new UsageError(`--${name}: "${given}" is not ${what}.`);
  }
}
