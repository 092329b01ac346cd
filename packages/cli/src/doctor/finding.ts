// The result of a check: its severity, a message and the exact fix.

type Severity = "ok" | "warning" | "error";

export interface Finding {
  readonly id: string;
  readonly severity: Severity;
  readonly message: string;
  /** A command to run, or one sentence; null when there is nothing to do. */
  readonly fix: string | null;
}

export function ok(id: string, message: string): Finding {
  return { id, severity: "ok", message, fix: null };
}

export function warning(id: string, message: string, fix: string): Finding {
  return { id, severity: "warning", message, fix };
}

export function error(id: string, message: string, fix: string): Finding {
  return { id, severity: "error", message, fix };
}

export const startFix = "npm start";

/** For checks that need a running cluster; the check `supervisor` reports once, as an error, that it does not run. */
export function notRunning(id: string): Finding {
  return warning(id, "not running", startFix);
}
