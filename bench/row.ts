// One line of the report.

export interface Row {
  what: string;
  measured: string;
  /** What the plan wants. */
  reach: string;
  reached: boolean | undefined;
}
