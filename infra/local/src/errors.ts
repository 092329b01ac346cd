// The failures a person can do something about. Each carries a code to switch on and, where there is one, the way out.

export type LocalErrorCode =
  | "binary_missing"
  | "port_taken"
  | "disk_full"
  | "no_access"
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
  if (!(error instanceof Error) || !("code" in error)) return undefined;
  const path = "path" in error && typeof error.path === "string" ? error.path : where;
  if (isDiskFull(error)) return diskFull(where, error);
  switch (error.code) {
    case "EACCES":
    case "EPERM":
    case "EROFS":
      return new LocalError("no_access", `${path} cannot be written by this user (${error.code}).`, {
        fix: "Choose another data folder with PARLEY_HOME=<folder>, or make this one yours.",
        cause: error,
      });
    case "EEXIST":
    case "ENOTDIR":
      return new LocalError("no_access", `${path} is in the way: it is a file, and a folder is needed there.`, {
        fix: "Choose another data folder with PARLEY_HOME=<folder>, or move that file away.",
        cause: error,
      });
    default:
      return undefined;
  }
}

/** Whether a write failed because the disk, or what this user may use of it, is full. */
export function isDiskFull(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === "ENOSPC" || error.code === "EDQUOT");
}

export function diskFull(where: string, cause?: unknown): LocalError {
  return new LocalError("disk_full", `The disk that holds ${where} is full.`, {
    fix: "Free some space there, or move the data with PARLEY_HOME=<folder>, and start again.",
    cause,
  });
}
