// Options as data: parsing, help and completion are derived from the same table.

export interface OptionSpec {
  readonly type: "string" | "boolean";
  readonly short?: string;
  /** Stands for the value in the help: `<id>`. */
  readonly value?: string;
  readonly about: string;
  /** The values there are, where they are few. */
  readonly choices?: readonly string[];
}
export type OptionTable = Readonly<Record<string, OptionSpec>>;

/** Where the cluster is, and who we are to it. */
export const targetOptions = {
  home: { type: "string", value: "<folder>", about: "the data folder (PARLEY_HOME; .parley here or above)" },
  url: { type: "string", value: "<url>", about: "the gateway (PARLEY_URL; what the data folder says)" },
  "token-file": { type: "string", value: "<file>", about: "holds the token (or PARLEY_TOKEN; <home>/token)" },
} as const satisfies OptionTable;

export const homeOption = { home: targetOptions.home } as const satisfies OptionTable;

export const jsonOption = {
  json: { type: "boolean", about: "data for programs instead of text for people" },
} as const satisfies OptionTable;

export const helpOption = {
  help: { type: "boolean", short: "h", about: "this text" },
} as const satisfies OptionTable;

/** What `parley.toml` is read with. */
export const settingsOptions = {
  preset: { type: "string", value: "<name>", about: "a set of settings to begin with (PARLEY_PRESET)" },
  set: { type: "string", value: "<key>=<value>", about: "a setting over all others, as limits.max_usd=2; repeatable" },
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

  /** Of an option that may be given more than once. */
  texts(name: string): string[] {
    return this.#given.flatMap(([each, value]) => (each === name && typeof value === "string" ? [value] : []));
  }
}
