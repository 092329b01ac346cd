// Resolves the attachments of a message: checks the ids given by the model against the store.
import { attachmentName, maxAttachments, Sha256Schema, store, type Attachment } from "@parley/contracts";
import { z } from "zod";
import { roleOf } from "../policy/workspace-access.ts";
import type { LocalContext } from "./local-tool.ts";

const AttachmentId = z.union([z.string(), z.object({ id: z.string(), name: z.string().optional() })]);

export const MessageAttachments = z
  .array(AttachmentId)
  .max(maxAttachments)
  .optional()
  .describe("Ids from the conversation or from attach.");

/** The attachments to send, or a sentence that explains why they cannot be sent. */
export async function attachmentsFor(
  wanted: z.infer<typeof MessageAttachments>,
  { leaderStore, turn }: Pick<LocalContext, "leaderStore" | "turn">,
): Promise<Attachment[] | string> {
  const requested = (wanted ?? []).map((each) => (typeof each === "string" ? { id: each, name: undefined } : each));
  const wrong = requested.find(({ id }) => !Sha256Schema.safeParse(id).success);
  if (wrong !== undefined) {
    return `"${wrong.id.slice(0, 200)}" is not the id of an attachment. To send a file of the workspace, pass it to attach and use the returned id.`;
  }
  if (requested.length === 0) return [];
  const { blobs } = await leaderStore.request(store.blobHead, {
    sha256: requested.map(({ id }) => id),
    // In other people's conversations only attachments that the conversation itself refers to can be sent.
    ...(roleOf(turn.root.trust) === "owner" ? {} : { sessionId: turn.sessionId }),
  });
  const found: Attachment[] = [];
  for (const { id, name } of requested) {
    const blob = blobs.find(({ sha256 }) => sha256 === id);
    if (blob === undefined) return `there is no attachment ${id} in this conversation, or it has been deleted.`;
    found.push({ ...blob, name: attachmentName(name, nameFor(blob.mediaType)) });
  }
  return found;
}

/** The name of an attachment without one. */
function nameFor(mediaType: string): string {
  const [kind = "file", subtype = ""] = mediaType.split("/");
  if (mediaType === "text/plain") return "text.txt";
  const extension = subtype.replace(/^x-/, "");
  if (kind === "application") return /^\w{1,5}$/.test(extension) ? `file.${extension}` : "file";
  return /^\w{1,5}$/.test(extension) ? `${kind}.${extension}` : kind;
}
