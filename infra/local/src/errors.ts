// Errors of starting and running a cluster on this machine. Each has a code and, if it is known, what the user can do about it.

import { omitUndefined } from "@parley/kit";

export type LocalErrorCode =
  | "binary_missing"
  | "port_taken"
  | "disk_full"
  | "no_access"
  | "server_failed"
  | "service_failed"
  /** Another cluster uses the data folder. */
  | "home_busy"
  | "bad_option"
  | "bad_settings"
  /** The agent did not answer a message. */
  | "answer_failed";

/** An error that is printed without a stack trace. */
export class LocalError extends Error {
  override readonly name = "LocalError";
  readonly code: LocalErrorCode;
  /** What to do, in one sentence; null if the message is enough. */
  readonly fix: string | null;

  constructor(code: LocalErrorCode, message: string, options: { fix?: string | undefined; cause?: unknown } = {}) {
    super(message, omitUndefined({ cause: options.cause }));
    this.code = code;
    this.fix = options.fix ?? null;
  }
}

/** A LocalError for a failed system call whose cause the user can remove; undefined for other codes. `folder`: what was written to. */
export function knownSystemError(error: unknown, folder: string): LocalError | undefined {
  if (!(error instanceof Error) || !("code" in error)) return undefined;
  const path = "path" in error && typeof error.path === "string" ? error.path : folder;
  if (isDiskFull(error)) return diskFullError(folder, error);
  switch (error.code) {
    case "EACCES":
    case "EPERM":
    case "EROFS":
      return new LocalError("no_access", `${path} cannot be written by this user (${error.code}).`, {
        fix: "Choose another data folder with PARLEY_HOME=<folder>, or change the owner of this one.",
        cause: error,
      });
    case "EEXIST":
    case "ENOTDIR":
      return new LocalError("no_access", `${path} is a file, but a folder is needed there.`, {
        fix: "Choose another data folder with PARLEY_HOME=<folder>, or move that file away.",
        cause: error,
      });
    default:
      return undefined;
  }
}

/** True if a write failed because the disk or the user's disk quota is full. */
export function isDiskFull(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === "ENOSPC" || error.code === "EDQUOT");
}

/** `path`: a file or folder on the disk. */
export function diskFullError(path: string, cause?: unknown): LocalError {
  return new LocalError("disk_full", `The disk of ${path} is full.`, {
    fix: "Free some space, or choose another data folder with PARLEY_HOME=<folder>, and start again.",
    cause,
  });
}
