// One line of the report.

export interface Row {
  what: string;
  measured: string;
  /** The target value; empty: the row has none. */
  target: string;
  /** undefined: the row has no target. */
  isMet: boolean | undefined;
}
