// Checks the body of a message as the real service does, and returns its parts or an error.
import { z } from "zod";
import { apiError, invalidForm, type ApiResult } from "./errors.ts";
import type { DiscordState, StoredFile } from "./state.ts";

const maxContent = 2_000;
const maxNonce = 25;
const maxFiles = 10;
const maxFileBytes = 10 * 1024 * 1024;
/** SUPPRESS_EMBEDS and SUPPRESS_NOTIFICATIONS; a response to an interaction may also be ephemeral. */
const allowedFlags = (1 << 2) | (1 << 6) | (1 << 12);
const snowflake = z.string().regex(/^\d{1,20}$/);

const Body = z.looseObject({
  content: z.string().nullish(),
  nonce: z.union([z.string(), z.number().int()]).nullish(),
  enforce_nonce: z.boolean().nullish(),
  flags: z.number().int().nullish(),
  tts: z.boolean().nullish(),
  allowed_mentions: z
    .object({
      parse: z.array(z.enum(["roles", "users", "everyone"])).optional(),
      roles: z.array(snowflake).max(100).optional(),
      users: z.array(snowflake).max(100).optional(),
      replied_user: z.boolean().optional(),
    })
    .nullish(),
  message_reference: z
    .looseObject({
      type: z.number().optional(),
      message_id: snowflake.optional(),
      fail_if_not_exists: z.boolean().optional(),
    })
    .nullish(),
  components: z
    .array(
      z.looseObject({
        type: z.literal(1),
        components: z
          .array(
            z.looseObject({
              type: z.literal(2),
              style: z.number().int().min(1).max(4),
              label: z.string().min(1).max(80),
              custom_id: z.string().min(1).max(100),
            }),
          )
          .min(1)
          .max(5),
      }),
    )
    .max(5)
    .nullish(),
  attachments: z
    .array(z.looseObject({ id: z.union([z.number(), z.string()]), filename: z.string().optional() }))
    .nullish(),
});

export interface MessageBody {
  content: string | undefined;
  nonce: string | null;
  enforceNonce: boolean;
  replyToId: string | null;
  components: unknown[] | undefined;
  flags: number;
  files: StoredFile[];
}

/** A file of a multipart request, as `server.ts` parses it. */
const UploadedFile = z.object({ name: z.string(), mediaType: z.string(), content: z.instanceof(Buffer) });

export function messageBodyOf(
  state: DiscordState,
  channelId: string,
  given: Record<string, unknown>,
  edits: boolean,
): MessageBody | ApiResult {
  const parsed = Body.safeParse(given);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const code = issue?.code === "too_big" ? "BASE_TYPE_MAX_LENGTH" : "BASE_TYPE_BAD";
    return invalidForm({ [issue?.path.join(".") ?? "_"]: { code, message: issue?.message ?? "invalid" } });
  }
  const { content, nonce, flags, message_reference: reference, components, attachments } = parsed.data;
  if (content !== undefined && content !== null) {
    if (!content.isWellFormed())
      return invalidForm({ content: { code: "STRING_TYPE_CONVERT", message: "not valid UTF-8" } });
    if (Array.from(content).length > maxContent)
      return invalidForm({
        content: { code: "BASE_TYPE_MAX_LENGTH", message: `Must be ${maxContent} or fewer in length.` },
      });
  }
  if (nonce !== undefined && nonce !== null && String(nonce).length > maxNonce)
    return invalidForm({ nonce: { code: "NONCE_TYPE_TOO_LONG", message: `Must be ${maxNonce} or fewer in length.` } });
  if (((flags ?? 0) & ~allowedFlags) !== 0)
    return invalidForm({ flags: { code: "INVALID_FLAGS", message: "not allowed" } });
  const ids = (components ?? []).flatMap((row) => row.components.map((button) => button.custom_id));
  if (new Set(ids).size !== ids.length)
    return invalidForm({
      components: { code: "COMPONENT_CUSTOM_ID_DUPLICATED", message: "Component custom id cannot be duplicated" },
    });
  const files = filesOf(state, given);
  if (files.length > maxFiles || (attachments?.length ?? 0) > maxFiles)
    return invalidForm({
      attachments: { code: "BASE_TYPE_MAX_LENGTH", message: `Must be ${maxFiles} or fewer in length.` },
    });
  if (files.some((file) => file.content.length > maxFileBytes))
    return apiError(413, 40_005, "Request entity too large");
  const text = content?.trim() ?? "";
  if (text === "" && files.length === 0 && !(edits && content === undefined))
    return apiError(400, 50_006, "Cannot send an empty message");
  const target = reference?.message_id;
  const exists = target !== undefined && state.messages.get(target)?.channelId === channelId;
  if (target !== undefined && !exists && reference?.fail_if_not_exists !== false)
    return invalidForm({ message_reference: { code: "REPLIES_UNKNOWN_MESSAGE", message: "Unknown message" } });
  return {
    content: content === undefined || content === null ? undefined : text,
    nonce: nonce === undefined || nonce === null ? null : String(nonce),
    enforceNonce: parsed.data.enforce_nonce === true,
    replyToId: exists ? target : null,
    components: components ?? undefined,
    flags: flags ?? 0,
    files,
  };
}

function filesOf(state: DiscordState, given: Record<string, unknown>): StoredFile[] {
  return Object.entries(given).flatMap(([name, value]) => {
    const file = /^files\[\d+\]$/.test(name) ? UploadedFile.safeParse(value) : undefined;
    return file?.success === true ? [{ id: state.nextId(), ...file.data }] : [];
  });
}
