// The secrets of commands: the variables the settings name, and hiding their values in what a command prints. Pure.
import { ConfigError, type Environment } from "@parley/chassis";

/** Values by the names that commands see. */
export type ToolSecrets = ReadonlyMap<string, string>;

/** A shorter value stands in ordinary output as well: hiding it would spoil that, and tell what it is. */
const shortest = 6;
const hidden = Buffer.from("***");

/** `named`: for each variable of a command, the variable of this service that holds its value. Throws ConfigError. */
export function toolSecrets(named: Readonly<Record<string, { env: string }>>, env: Environment): ToolSecrets {
  const found = new Map<string, string>();
  for (const [name, source] of Object.entries(named)) {
    const value = env[source.env] ?? "";
    const setting = `tools.secrets.exec.${name}`;
    if (value === "") throw new ConfigError(`${setting} needs the environment variable ${source.env}`);
    if (value.length < shortest || value.includes("\0")) {
      throw new ConfigError(`${setting}: the value of ${source.env} must have at least ${shortest} characters`);
    }
    found.set(name, value);
  }
  return found;
}

/** Writes `***` for each value in a stream, also where a value comes in pieces. What may be the beginning of one is kept back. */
export class SecretMask {
  /** The longest first: one may begin with another. */
  readonly #values: readonly Buffer[];
  #kept = Buffer.alloc(0);

  constructor(secrets: ToolSecrets) {
    this.#values = [...secrets.values()].map((value) => Buffer.from(value)).toSorted((a, b) => b.length - a.length);
  }

  /** What of it may be shown now. */
  push(chunk: Buffer): Buffer {
    return this.#values.length === 0 ? chunk : this.#take(chunk, false);
  }

  /** What was kept back; nothing comes after it. */
  end(): Buffer {
    return this.#take(Buffer.alloc(0), true);
  }

  #take(chunk: Buffer, last: boolean): Buffer {
    const text = Buffer.concat([this.#kept, chunk]);
    const shown: Buffer[] = [];
    let from = 0;
    // Where each value is next: looked up again only once it is passed, so that the text is searched once for each value.
    const ahead = this.#values.map((value) => ({ at: text.indexOf(value), value }));
    let open = last ? text.length : this.#openEnd(text, from);
    for (;;) {
      const next = nextOf(text, ahead, from);
      if (open < from) open = this.#openEnd(text, from);
      // A value that begins before the next whole one may still turn out to be the longer one.
      if (next === undefined || next.at >= open) {
        shown.push(text.subarray(from, open));
        this.#kept = Buffer.from(text.subarray(open));
        return Buffer.concat(shown);
      }
      shown.push(text.subarray(from, next.at), hidden);
      from = next.at + next.length;
    }
  }

  /** Where a value begins that the end cuts off; the length of the text where none does. */
  #openEnd(text: Buffer, from: number): number {
    const longest = this.#values[0]?.length ?? 0;
    for (let at = Math.max(from, text.length - longest + 1); at < text.length; at++) {
      const rest = text.subarray(at);
      if (this.#values.some((value) => value.length > rest.length && value.subarray(0, rest.length).equals(rest))) {
        return at;
      }
    }
    return text.length;
  }
}

/** The first value from a position on, the longest of those that begin together. Moves what is passed forward. */
function nextOf(
  text: Buffer,
  ahead: { at: number; value: Buffer }[],
  from: number,
): { at: number; length: number } | undefined {
  let next: { at: number; length: number } | undefined;
  for (const each of ahead) {
    if (each.at >= 0 && each.at < from) each.at = text.indexOf(each.value, from);
    // The longest comes first.
    if (each.at >= 0 && (next === undefined || each.at < next.at)) next = { at: each.at, length: each.value.length };
  }
  return next;
}
