// What a check finds: how bad it is, in words, and the exact thing to do about it.

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

/** For what can only be looked at while the cluster runs; that it does not run is said once, as an error, by `supervisor`. */
export function notRunning(id: string): Finding {
  return warning(id, "not running", startFix);
}
