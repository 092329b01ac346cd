// Operations on documents: what defines the agent and what it remembers.
import { z } from "zod";
import { documentAuthors, documentHistory, DocumentSchema } from "../store/documents.ts";
import { QuerySwitch, sameChange } from "./fields.ts";
import { operation } from "./operation.ts";

const path = z.string().min(1).max(512);
const wholeNumber = z.coerce.number().int().min(1);
/** The version that the change is based on, 0 for a new document; omitted: no check. */
const expectedVersion = z.number().int().min(0).optional();
const target = { path, author: z.enum(["owner", "import"]).default("owner"), expectedVersion };
const Changed = z.object({
  /** `unchanged`: the document was already in the requested state. */
  status: z.enum(["saved", "unchanged"]),
  document: DocumentSchema,
});
const conflict = "conflict: the document has a different version; nothing was changed";

export const documentsList = operation({
  name: "documents.list",
  summary: "All documents, without their texts, sorted by path",
  role: "owner",
  input: z.strictObject({
    /** Also include removed documents. */
    removed: QuerySwitch.default("false"),
  }),
  output: z.object({ documents: z.array(DocumentSchema) }),
  http: { method: "GET", path: "/api/documents", answers: { 200: "The newest versions" } },
});

export const documentsGet = operation({
  name: "documents.get",
  summary: "One document with its text, in the newest or an earlier version",
  role: "owner",
  input: z.strictObject({
    path,
    version: wholeNumber.optional(),
    /** Also return the author of each line. */
    authors: QuerySwitch.default("false"),
  }),
  output: z.object({
    document: DocumentSchema.extend({
      content: z.string(),
      /** The author of each line, in order; only on request. */
      authors: z.array(z.enum(documentAuthors)).optional(),
    }),
  }),
  http: { method: "GET", path: "/api/documents/content", answers: { 200: "The document" } },
});

export const documentsHistory = operation({
  name: "documents.history",
  summary: "The versions of a document, newest first",
  role: "owner",
  input: z.strictObject({
    path,
    limit: wholeNumber.max(500).default(50),
    /** Only versions before this one. */
    before: wholeNumber.optional(),
  }),
  output: documentHistory.output,
  http: { method: "GET", path: "/api/documents/history", answers: { 200: "The versions, without texts" } },
});

export const documentsPut = operation({
  name: "documents.put",
  summary: "Write a document",
  role: "owner",
  audit: ["path"],
  input: z.strictObject({ ...target, content: z.string() }),
  output: Changed,
  http: {
    method: "POST",
    path: "/api/documents/put",
    key: sameChange,
    answers: { 200: "The new version", 409: conflict },
  },
});

export const documentsRestore = operation({
  name: "documents.restore",
  summary: "Restore an old version, with the author of each line",
  role: "owner",
  audit: ["version", "path"],
  input: z.strictObject({
    path,
    /** The version to restore. */
    version: z.number().int().min(1),
    expectedVersion,
  }),
  output: Changed,
  http: {
    method: "POST",
    path: "/api/documents/restore",
    key: sameChange,
    answers: { 200: "The new version", 409: conflict },
  },
});

export const documentsVouch = operation({
  name: "documents.vouch",
  summary: "Mark a document as trusted: every line counts as the owner's from now on",
  role: "owner",
  audit: ["expectedVersion", "path"],
  input: z.strictObject({
    path,
    /** The version that the owner has read. */
    expectedVersion: z.number().int().min(1),
  }),
  output: Changed,
  http: {
    method: "POST",
    path: "/api/documents/vouch",
    key: sameChange,
    answers: {
      200: "The new version, with the same text",
      404: "not_found: no document has this path",
      409: conflict,
    },
  },
});

export const documentsDelete = operation({
  name: "documents.delete",
  summary: "Remove a document; its versions are kept",
  role: "owner",
  audit: ["path"],
  input: z.strictObject(target),
  output: Changed,
  http: {
    method: "POST",
    path: "/api/documents/delete",
    key: sameChange,
    answers: { 200: "The version that marks the removal", 409: conflict },
  },
});
