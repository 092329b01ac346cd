// The size limit of one message. Pure.
import { maxInboundBytes, type InboundMessage } from "@parley/contracts";

/** Thrown for a message above the limit; nothing was stored. */
export class MessageTooLargeError extends Error {
  override readonly name = "MessageTooLargeError";
  readonly bytes: number;

  constructor(bytes: number) {
    super(`the message has ${bytes} bytes as JSON; the limit is ${maxInboundBytes}`);
    this.bytes = bytes;
  }
}

/** One UTF-16 unit takes at most six bytes as JSON (`\u0000`). */
const maxBytesPerUnit = 6;
const roomForTheRest = 16 * 1024;

/** Throws MessageTooLargeError. */
export function assertMessageSize(message: InboundMessage): void {
  let units = 0;
  for (const part of message.parts) {
    if (part.type === "text") units += part.text.length;
    if (part.type === "binary") units += part.data.length;
  }
  if (units * maxBytesPerUnit + roomForTheRest <= maxInboundBytes) return;
  const bytes = Buffer.byteLength(JSON.stringify(message));
  if (bytes > maxInboundBytes) throw new MessageTooLargeError(bytes);
}
