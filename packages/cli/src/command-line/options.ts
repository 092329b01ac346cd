// Options as data: parsing, help and completion all use the same table.

export interface OptionSpec {
  readonly type: "string" | "boolean";
  readonly short?: string;
  /** Placeholder for the value in the help: `<id>`. */
  readonly value?: string;
  readonly about: string;
  /** The allowed values, if there are few. */
  readonly choices?: readonly string[];
}
export type OptionTable = Readonly<Record<string, OptionSpec>>;

/** The address of the cluster and the credentials. */
export const targetOptions = {
  home: {
    type: "string",
    value: "<folder>",
    about: "the data folder (PARLEY_HOME; default: .parley here or in a parent folder)",
  },
  url: { type: "string", value: "<url>", about: "the gateway (PARLEY_URL; default: recorded in the data folder)" },
  "token-file": {
    type: "string",
    value: "<file>",
    about: "file with the token (or PARLEY_TOKEN; default: <home>/token)",
  },
} as const satisfies OptionTable;

export const homeOption = { home: targetOptions.home } as const satisfies OptionTable;

export const jsonOption = {
  json: { type: "boolean", about: "print JSON for programs" },
} as const satisfies OptionTable;

export const helpOption = {
  help: { type: "boolean", short: "h", about: "show this help" },
} as const satisfies OptionTable;

/** Options that change how `parley.toml` is evaluated. */
export const settingsOptions = {
  preset: { type: "string", value: "<name>", about: "a set of settings to start from (PARLEY_PRESET)" },
  set: { type: "string", value: "<key>=<value>", about: "override a setting, such as limits.max_usd=2; repeatable" },
} as const satisfies OptionTable;

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
}
