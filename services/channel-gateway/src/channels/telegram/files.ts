// Which files a Telegram message carries; pure.
import type { Attachment, Message } from "./updates.ts";
import { fileKinds } from "./updates.ts";

export interface FileOfMessage {
  fileId: string;
  /** What it is called where it has no name: `photo`, `voice` … */
  kind: string;
  name: string | undefined;
  /** Null: the platform does not say. */
  bytes: number | null;
}

/** At most one: Telegram's messages carry one file each, albums are several messages. */
export function filesOf(message: Message): FileOfMessage[] {
  for (const kind of fileKinds) {
    const found = message[kind];
    // A photo comes in several sizes, the largest last.
    const file: Attachment | undefined = Array.isArray(found) ? found.at(-1) : found;
    if (file?.file_id === undefined) continue;
    return [
      { fileId: file.file_id, kind: kind.replace("_", " "), name: file.file_name, bytes: file.file_size ?? null },
    ];
  }
  return [];
}
