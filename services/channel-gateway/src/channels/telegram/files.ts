// Finds the files of a Telegram message. Pure.
import type { IncomingFile } from "../channel.ts";
import type { Attachment, Message } from "./update-schema.ts";
import { fileKinds } from "./update-schema.ts";

/** Returns at most one file: a Telegram message has one file, and an album is several messages. Its handle is the `file_id`. */
export function filesOf(message: Message): IncomingFile[] {
  for (const kind of fileKinds) {
    const found = message[kind];
    // Telegram lists a photo in several sizes, the largest last.
    const file: Attachment | undefined = Array.isArray(found) ? found.at(-1) : found;
    if (file?.file_id === undefined) continue;
    return [
      { handle: file.file_id, kind: kind.replace("_", " "), name: file.file_name, bytes: file.file_size ?? null },
    ];
  }
  return [];
}
