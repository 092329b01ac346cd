// One line of the report.

export interface Row {
  what: string;
  measured: string;
  /** The target value. */
  reach: string;
  reached: boolean | undefined;
}
