// Converts text from the HTTP and WebSocket API to an inbound message. Holders of tokens are the owner, within the scopes of their token.
import { randomUUID } from "node:crypto";
import { profileNames, type ParleySettings } from "@parley/contracts";
import type { ApiAccess, Speaker } from "../operations/operation.ts";
import { requireScope } from "../operations/registry.ts";
import type { ParsedInput } from "../operations/parse-input.ts";
import { sha256Hex } from "../channels/digest.ts";
import type { AuthorizedInput } from "../ingress/authorized-input.ts";
import { HttpError } from "./errors.ts";
import { defaultConversation } from "./openai-format.ts";

const maxKeyLength = 256;
const maxExternalIdLength = 512;

/**
 * A message of a caller of the API. `key` is its idempotency key, unique within its conversation. Throws OperationError when the token
 * lacks the scope `talk`, and HttpError for a conversation that cannot be stored.
 */
export function ownerInput(
  access: ApiAccess,
  conversation: string,
  text: string,
  key: string | string[] | undefined,
): AuthorizedInput {
  requireScope(access, "talk", "sending messages");
  if (conversation.includes("\0"))
    throw new HttpError(400, "invalid_request", "conversation: must not contain a NUL character");
  return {
    channel: "http",
    account: "default",
    conversation,
    externalId: key === undefined ? randomUUID() : externalId(conversation, String(key)),
    text,
    contact: { id: "owner" },
    access,
    role: "owner",
    origin: "user",
    replyTo: null,
    keyed: true,
  };
}

/**
 * The input of a caller that waits for the answer: it gets its own turn. Without a conversation it also gets its own session, named by
 * the key. Commands and queue modes (`/steer`) concern other turns, so without a conversation they apply to the default one.
 */
export function callInput(
  access: ApiAccess,
  conversation: string | undefined,
  parsed: ParsedInput,
  key: string | string[] | undefined,
): AuthorizedInput {
  const { text, mode } = parsed.kind === "message" ? parsed : { text: "", mode: undefined };
  const input = {
    ...ownerInput(access, conversation ?? defaultConversation, text, key),
    mode,
    exclusive: true,
    // The caller of this request cannot answer approval questions.
    approvals: "owner" as const,
  };
  if (conversation !== undefined || parsed.kind === "command" || mode !== undefined) return input;
  return { ...input, conversation: `call-${sha256Hex(input.externalId).slice(0, 32)}`, thread: "own" };
}

/**
 * The input as input for a profile: in a session of its own, one per conversation and profile. Throws HttpError for an unknown profile.
 * `profile` undefined: for the agent itself.
 */
export function inputFor<I extends AuthorizedInput>(
  settings: ParleySettings,
  input: I,
  profile: string | undefined,
): I {
  if (profile === undefined) return input;
  const known = profileNames(settings);
  if (!known.includes(profile)) {
    const text = `there is no profile "${profile}"; known: ${known.join(", ")}`;
    throw new HttpError(400, "invalid_request", `profile: ${text}`);
  }
  const own = ["own", "separate"].includes(input.thread ?? "") || input.conversation.endsWith(`@${profile}`);
  return { ...input, profile, conversation: own ? input.conversation : `${input.conversation}@${profile}` };
}

function externalId(conversation: string, key: string): string {
  if (key === "" || key.length > maxKeyLength) {
    throw new HttpError(400, "invalid_request", `Idempotency-Key: must have from 1 to ${maxKeyLength} characters`);
  }
  if (key.includes("\0")) throw new HttpError(400, "invalid_request", "the id must not contain a NUL character");
  const id = `${conversation}/${key}`;
  return id.length <= maxExternalIdLength ? id : sha256Hex(id);
}

/**
 * A holder of an API token as the caller of an operation. `place` names the interface in records; `ref` identifies the request, `key`
 * is its idempotency key.
 */
export function ownerCaller(
  access: ApiAccess,
  place: string,
  ref: string,
  key?: string,
): { speaker: Speaker; by: string } {
  const speaker = {
    route: "",
    role: "owner" as const,
    channel: "http",
    account: "default",
    conversation: defaultConversation,
    contact: { id: "owner" },
    replyTo: null,
    direct: true,
    ref,
    access,
    ...(key === undefined ? {} : { key }),
  };
  return { speaker, by: `${access.name} (${place})` };
}
