// Secrets for commands: reads the variables that the settings name, and masks their values in output. Pure.
import { ConfigError, type Environment } from "@parley/chassis";

/** Values by the variable names that commands see. */
export type ToolSecrets = ReadonlyMap<string, string>;

/** A shorter value also occurs in ordinary output: masking it would corrupt the output and reveal the value. */
const shortest = 6;
const hidden = Buffer.from("***");

/** `named` maps each command variable to the service variable with its value. Throws ConfigError. */
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

/** Replaces each value in a stream by `***`, also across chunks. A possible beginning of a value is held back. */
export class SecretMask {
  /** Longest first: one value may be a prefix of another. */
  readonly #values: readonly Buffer[];
  #kept = Buffer.alloc(0);

  constructor(secrets: ToolSecrets) {
    this.#values = [...secrets.values()].map((value) => Buffer.from(value)).toSorted((a, b) => b.length - a.length);
  }

  /** Returns the part that is safe to show now. */
  push(chunk: Buffer): Buffer {
    return this.#values.length === 0 ? chunk : this.#take(chunk, false);
  }

  /** Returns the held-back rest; call it last. */
  end(): Buffer {
    return this.#take(Buffer.alloc(0), true);
  }

  #take(chunk: Buffer, last: boolean): Buffer {
    const text = Buffer.concat([this.#kept, chunk]);
    const shown: Buffer[] = [];
    let from = 0;
    // The next position of each value, searched again only after it is passed, so each value scans the text once.
    const ahead = this.#values.map((value) => ({ at: text.indexOf(value), value }));
    let open = last ? text.length : this.#openEnd(text, from);
    for (;;) {
      const next = nextOf(text, ahead, from);
      if (open < from) open = this.#openEnd(text, from);
      // An incomplete value that starts before the next match may still be the longer one.
      if (next === undefined || next.at >= open) {
        shown.push(text.subarray(from, open));
        this.#kept = Buffer.from(text.subarray(open));
        return Buffer.concat(shown);
      }
      shown.push(text.subarray(from, next.at), hidden);
      from = next.at + next.length;
    }
  }

  /** Position of a value that the end of the text cuts off; the length of the text if none. */
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

/** The first match at or after a position, the longest on a tie. Advances the positions in `ahead`. */
function nextOf(
  text: Buffer,
  ahead: { at: number; value: Buffer }[],
  from: number,
): { at: number; length: number } | undefined {
  let next: { at: number; length: number } | undefined;
  for (const each of ahead) {
    if (each.at >= 0 && each.at < from) each.at = text.indexOf(each.value, from);
    // Values are sorted longest first.
    if (each.at >= 0 && (next === undefined || each.at < next.at)) next = { at: each.at, length: each.value.length };
  }
  return next;
}
