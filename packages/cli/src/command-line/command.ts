// The type of a command.

import type { Io } from "../io.ts";
import type { OptionTable, OptionValues } from "./options.ts";

export interface Call {
  readonly values: OptionValues;
  readonly positionals: readonly string[];
  /** Everything after the name, for a command that passes it through. */
  readonly rest: readonly string[];
  readonly io: Io;
}

export type Run = (call: Call) => Promise<number>;

export interface CommandSpec {
  /** One word, or two: `pairing approve`. */
  readonly name: string;
  readonly summary: string;
  /** Operands after the name and the options: `<code>`, `[<file>]`, `[<text>...]`. */
  readonly operands?: string;
  /** Maximum number of operands; default 0. */
  readonly maxOperands?: number;
  readonly options: OptionTable;
  /** Further help text, as whole lines. */
  readonly details?: string;
  readonly examples: readonly string[];
  /** Everything after the name, including --help, is passed to another program. */
  readonly passThrough?: boolean;
  /** Imports the code on demand. */
  readonly load: () => Promise<Run>;
}
