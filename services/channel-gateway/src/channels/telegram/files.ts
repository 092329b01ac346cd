// Finds the files of a Telegram message. Pure.
import type { Attachment, Message } from "./update-schema.ts";
import { fileKinds } from "./update-schema.ts";

export interface FileOfMessage {
  fileId: string;
  /** The name of a file without one: `photo`, `voice` … */
  kind: string;
  name: string | undefined;
  /** Null: unknown. */
  bytes: number | null;
}

/** Returns at most one file: a Telegram message has one file, and an album is several messages. */
export function filesOf(message: Message): FileOfMessage[] {
  for (const kind of fileKinds) {
    const found = message[kind];
    // Telegram lists a photo in several sizes, the largest last.
    const file: Attachment | undefined = Array.isArray(found) ? found.at(-1) : found;
    if (file?.file_id === undefined) continue;
    return [
      { fileId: file.file_id, kind: kind.replace("_", " "), name: file.file_name, bytes: file.file_size ?? null },
    ];
  }
  return [];
}
