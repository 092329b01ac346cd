// Which attachments a message takes along: ids as the model has read them, checked against the store.
import { attachmentName, maxAttachments, Sha256Schema, store, type Attachment } from "@parley/contracts";
import { z } from "zod";
import { roleOf } from "../permissions/workspace-access.ts";
import type { LocalContext } from "./local-tool.ts";

const AttachmentId = z.union([z.string(), z.object({ id: z.string(), name: z.string().optional() })]);

export const MessageAttachments = z
  .array(AttachmentId)
  .max(maxAttachments)
  .optional()
  .describe("Ids of attachments, or {id, name}: from the conversation, or from attach for a file of the workspace.");

/** What is sent, or in a sentence why nothing can be. */
export async function attachmentsFor(
  wanted: z.infer<typeof MessageAttachments>,
  { bus, storeTimeoutMs, turn }: Pick<LocalContext, "bus" | "storeTimeoutMs" | "turn">,
): Promise<Attachment[] | string> {
  const asked = (wanted ?? []).map((each) => (typeof each === "string" ? { id: each, name: undefined } : each));
  const wrong = asked.find(({ id }) => !Sha256Schema.safeParse(id).success);
  if (wrong !== undefined) {
    return `"${wrong.id.slice(0, 200)}" is not the id of an attachment. Make a file of the workspace one with attach, and give its id.`;
  }
  if (asked.length === 0) return [];
  const { blobs } = await bus.request(
    store.blobHead,
    {
      sha256: asked.map(({ id }) => id),
      // Others than the owner send only what their own conversation refers to, regardless of the id they name.
      ...(roleOf(turn.root.trust) === "owner" ? {} : { sessionId: turn.sessionId }),
    },
    { timeoutMs: storeTimeoutMs },
  );
  const found: Attachment[] = [];
  for (const { id, name } of asked) {
    const blob = blobs.find(({ sha256 }) => sha256 === id);
    if (blob === undefined) return `there is no attachment ${id} in this conversation (any more).`;
    found.push({ ...blob, name: attachmentName(name, nameFor(blob.mediaType)) });
  }
  return found;
}

/** For what nobody has named. */
function nameFor(mediaType: string): string {
  const [kind = "file", subtype = ""] = mediaType.split("/");
  if (mediaType === "text/plain") return "text.txt";
  const extension = subtype.replace(/^x-/, "");
  if (kind === "application") return /^\w{1,5}$/.test(extension) ? `file.${extension}` : "file";
  return /^\w{1,5}$/.test(extension) ? `${kind}.${extension}` : kind;
}
