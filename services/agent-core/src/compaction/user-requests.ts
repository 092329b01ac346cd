// Identifies and quotes user requests in a session's log.
import { textOf, type Message } from "@parley/contracts";

/** Whether somebody sent the message; notes of the loop are user messages without a sender. */
export function isUserRequest(message: Message): boolean {
  return message.role === "user" && message.from !== undefined;
}

/** The literal text; attachments are named, not repeated. */
export function requestText(message: Message): string {
  const attached = message.parts.flatMap((part) => {
    if (part.type === "blob") return [`[attached: ${part.name}, ${part.mediaType}, id ${part.sha256}]`];
    return part.type === "binary" ? [`[attached: ${part.name ?? "a file"}, ${part.mediaType}]`] : [];
  });
  return [textOf(message.parts), ...attached].filter((text) => text.trim() !== "").join("\n\n");
}
