// What a command is.

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
  /** What comes after the name and the options: `<code>`, `[<file>]`, `[<text>...]`. */
  readonly operands?: string;
  /** How many operands there may be; none by default. */
  readonly maxOperands?: number;
  readonly options: OptionTable;
  /** More to know, whole lines. */
  readonly details?: string;
  readonly examples: readonly string[];
  /** Everything after the name belongs to another program, --help included. */
  readonly passThrough?: boolean;
  /** Fetches the code only when it is needed. */
  readonly load: () => Promise<Run>;
}
