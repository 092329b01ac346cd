// Errors of workspace paths, with messages for the model. The messages never contain host paths.

export type WorkspaceErrorCode =
  | "invalid_path"
  | "outside"
  | "not_found"
  | "not_a_directory"
  | "is_a_directory"
  | "not_a_file"
  | "no_room"
  | "too_many_links"
  | "changed"
  | "denied";

/** A path that cannot be used; the message is for the model. */
export class WorkspaceError extends Error {
  override readonly name = "WorkspaceError";
  readonly code: WorkspaceErrorCode;

  constructor(code: WorkspaceErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

const sentences: Record<string, string> = {
  EACCES: "The file system does not permit this operation.",
  EPERM: "The file system does not permit this operation.",
  EROFS: "The file system is read-only.",
  ENOSPC: "The disk is full.",
  EDQUOT: "The disk quota is used up.",
  EFBIG: "The file would become too large.",
  ENAMETOOLONG: "The path, or a name in it, is too long.",
  ENOENT: "The file disappeared while it was being used.",
  ENOTDIR: "A part of the path is not a directory.",
  EISDIR: "The path is a directory.",
  ELOOP: "The path contains too many symbolic links.",
  ENOTEMPTY: "The directory is not empty.",
  EEXIST: "The name already exists.",
  EMFILE: "Too many files are open; try again.",
  ENFILE: "Too many files are open; try again.",
  ENXIO: "The path is a device or pipe, not a file.",
  EIO: "The disk reported an error.",
};

/** The message for a workspace or file system error; undefined for any other error, which is a bug. */
export function describeFileError(error: unknown): string | undefined {
  if (error instanceof WorkspaceError) return error.message;
  const code = errnoOf(error);
  if (code === undefined) return undefined;
  const sentence = sentences[code];
  return sentence === undefined ? undefined : `${sentence} (${code})`;
}

/** The system's error code, e.g. `ENOENT`. */
export function errnoOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const code: unknown = Reflect.get(error, "code");
  return typeof code === "string" ? code : undefined;
}
