// What the HTTP and WebSocket API make of a text: the holder of the token is the owner.
import { randomUUID } from "node:crypto";
import { sha256Hex } from "../digest.ts";
import type { KnownInput } from "../known-input.ts";
import { HttpError } from "./errors.ts";

const maxKeyLength = 256;
const maxExternalIdLength = 512;

/** `key` makes the same message recognisable when it is sent again; it counts within its conversation. */
export function apiInput(conversation: string, text: string, key: string | string[] | undefined): KnownInput {
  return {
    channel: "http",
    account: "default",
    conversation,
    externalId: key === undefined ? randomUUID() : externalId(conversation, String(key)),
    text,
    contact: { id: "owner" },
    role: "owner",
    origin: "user",
    replyTo: null,
    keyed: true,
  };
}

function externalId(conversation: string, key: string): string {
  if (key === "" || key.length > maxKeyLength) {
    throw new HttpError(400, "invalid_request", `Idempotency-Key: must have 1 to ${maxKeyLength} characters`);
  }
  const id = `${conversation}/${key}`;
  return id.length <= maxExternalIdLength ? id : sha256Hex(id);
}
