// The failures a person can do something about. Each carries a code to switch on and, where there is one, the way out.

export type LocalErrorCode =
  | "binary_missing"
  | "port_taken"
  | "disk_full"
  | "server_failed"
  | "service_failed"
  | "home_busy"
  | "bad_option"
  | "bad_settings"
  | "answer_failed";

export class LocalError extends Error {
  override readonly name = "LocalError";
  readonly code: LocalErrorCode;
  /** What to do about it, one sentence, or null when the message says it all. */
  readonly fix: string | null;

  constructor(code: LocalErrorCode, message: string, options: { fix?: string; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.fix = options.fix ?? null;
  }
}

/** The error for a failed system call, when its code is one a person can act on; undefined otherwise. */
export function knownSystemError(error: unknown, where: string): LocalError | undefined {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (code === "ENOSPC") return diskFull(where, error);
  return undefined;
}

export function diskFull(where: string, cause?: unknown): LocalError {
  return new LocalError("disk_full", `The disk that holds ${where} is full.`, {
    fix: "Free some space there, or move the data with PARLEY_HOME=<folder>, and start again.",
    cause,
  });
}
