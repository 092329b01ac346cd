// What a tool-runner may request of the store for one tool call. Every request carries the call's grant, which determines session, author
// and audience. FORBIDDEN: the grant is forged, expired, of an unknown epoch, or does not include the right.
import { z } from "zod";
import { Sha256Schema } from "../attachments.ts";
import type { RequestContract } from "../contract.ts";
import { GrantToken } from "../grants.ts";
import { ToolResultPart } from "../messages.ts";
import { ToolStepSchema } from "../turns.ts";
import { blobBegin, blobGet } from "./blobs.ts";
import { ChangeSchema, documentGet, documentList, DocumentPath } from "./documents.ts";
import { storeRequest } from "./shared.ts";

const Granted = { grant: GrantToken };

/** SHA-256 of a secret, hexadecimal: presenting the secret later proves to be the sender of the hash. */
export const SecretHash = Sha256Schema;
export const Secret = z.string().min(32).max(100);

/** Requested by a tool-runner, served by the store. */
function forCall<I extends z.ZodType, O extends z.ZodType>(
  contract: Pick<RequestContract<I, O>, "subject" | "doc" | "input" | "output">,
) {
  return storeRequest({ clients: ["tool-runner"], ...contract });
}

export const stepClaim = forCall({
  subject: "store.step.claim",
  doc: "Move a step from `intended` to `running`, before a tool of class `once` or `idempotent` starts. Not granted when the step is settled, or is running and of class `once`; `step` is its current state. The claimer settles the step with the secret whose hash is `claimHash`.",
  input: z.object({
    ...Granted,
    opId: z.uuid(),
    /** The newest epoch that the runner knows of. */
    epoch: z.number().int(),
    runner: z.string(),
    claimHash: SecretHash,
  }),
  output: z.object({ granted: z.boolean(), step: ToolStepSchema }),
});

export const callSettle = forCall({
  subject: "store.call.settle",
  doc: "Set the final state and result of a call's step. The first settlement wins; the reply contains it. FENCED when the step was claimed with another secret. INVALID_INPUT for the result of another call and for an attachment that the call's session does not refer to.",
  input: z.object({
    ...Granted,
    opId: z.uuid(),
    /** The secret of the claim; ignored for a step that is not claimed. */
    claim: Secret,
    state: z.enum(["done", "failed", "cancelled", "unknown"]),
    result: ToolResultPart.omit({ sent: true, refused: true, untainted: true }),
  }),
  output: z.object({ step: ToolStepSchema }),
});

export const callDocumentList = forCall({
  subject: "store.call.document.list",
  doc: "Like `store.document.list`, for a call that reads documents. Without private documents in other people's conversations.",
  input: documentList.input.extend(Granted),
  output: documentList.output,
});

export const callDocumentGet = forCall({
  subject: "store.call.document.get",
  doc: "Like `store.document.get`, for a call that reads documents. FORBIDDEN for a private document in other people's conversations. INVALID_INPUT for the text of an older version: only its line authors are readable.",
  input: documentGet.input.extend(Granted),
  output: documentGet.output,
});

export const callDocumentPut = forCall({
  subject: "store.call.document.put",
  doc: "Save a new version of a document, for a call that writes documents. Its author is `agent`, or `untrusted` in a turn that has read untrusted content. Errors as for `store.document.put`. CONFLICT when the call has ended.",
  input: z.object({
    ...Granted,
    opId: z.uuid(),
    path: DocumentPath,
    content: z.string(),
    /** The version that the change is based on; 0: there is no such document. Omitted: any version. */
    expectedVersion: z.number().int().min(0).optional(),
  }),
  output: ChangeSchema,
});

export const callBlobBegin = forCall({
  subject: "store.call.blob.begin",
  doc: "Like `store.blob.begin`. `kept` only for content that the call's session or another session of its agent tree already refers to: other content must be uploaded even if the store has it. The commit adds the session's reference. Without a grant, the content is for a prompt that a person fills in (`mcp.prompt`): it is always uploaded and gets no reference.",
  input: blobBegin.input.extend({ grant: GrantToken.optional() }),
  output: blobBegin.output,
});

export const callBlobGet = forCall({
  subject: "store.call.blob.get",
  doc: "Like `store.blob.get`, for content that the call's session or another session of its agent tree refers to; NOT_FOUND for other content.",
  input: blobGet.input.extend(Granted),
  output: blobGet.output,
});
