// Documents: what the agent is and knows, as versioned text in the store, so that every replica sees the same.
import { z } from "zod";
import { request } from "../contract.ts";

/** Documents that stand in the workspace's root, in the order in which the prompt shows them. */
export const rootDocuments = [
  "SOUL.md",
  "AGENTS.md",
  "IDENTITY.md",
  "USER.md",
  "TOOLS.md",
  "MEMORY.md",
  "HEARTBEAT.md",
] as const;

/** Folders of the workspace's root in which everything is a document. */
export const documentFolders = ["memory", "skills"] as const;

/** Whether a document is about the owner: other people's conversations do not see it. */
export function isPrivateDocument(path: string): boolean {
  return path === "USER.md" || path === "MEMORY.md" || path === "HEARTBEAT.md" || path.startsWith("memory/");
}

/** UTF-8 bytes of one document. */
export const maxDocumentBytes = 256 * 1024;
const maxPathCharacters = 256;
const maxPathParts = 12;

/** Why a path cannot be a document's, in a sentence; null when it can. */
export function documentPathProblem(path: string): string | null {
  const parts = path.split("/");
  const [first = "", second] = parts;
  if (path.length > maxPathCharacters || parts.length > maxPathParts)
    return `the path of a document has at most ${maxPathCharacters} characters and ${maxPathParts} parts`;
  if (!path.isWellFormed() || /\p{Cc}/u.test(path) || parts.some((part) => part === "" || /^\.\.?$/.test(part)))
    return "the path of a document is relative, without empty parts, . and .., and holds no control characters";
  if (parts.length === 1 && rootDocuments.some((name) => name === path)) return null;
  if (first === "memory" && second !== undefined)
    return path.endsWith(".md") ? null : "notes below memory/ are markdown: their names end in .md";
  if (first === "skills" && second !== undefined)
    return parts.length > 2 ? null : "a skill is a folder: skills/<name>/SKILL.md, and its other files beside it";
  return `there are ${rootDocuments.join(", ")}, memory/….md and skills/<name>/…; nothing else is a document`;
}

export const DocumentPath = z.string().superRefine((path, context) => {
  const problem = documentPathProblem(path);
  if (problem !== null) context.addIssue({ code: "custom", message: `"${path.slice(0, 300)}": ${problem}` });
});

/**
 * Who wrote a version. `owner`: a person through the API or the CLI. `import`: a person, a whole folder at once. `agent`: the
 * agent's file tools. `untrusted`: the agent, in a turn that had read what outsiders can write.
 */
export const documentAuthors = ["owner", "import", "agent", "untrusted"] as const;
export type DocumentAuthor = (typeof documentAuthors)[number];

export const DocumentSchema = z.object({
  path: z.string(),
  /** From 1; every change makes a new one, a removal as well. */
  version: z.number().int(),
  /** Position among the changes of all documents: what is listed `since` it is newer. */
  change: z.number().int(),
  /** Of the UTF-8 bytes, hexadecimal. */
  sha256: z.string(),
  bytes: z.number().int(),
  /** This version removed the document. */
  deleted: z.boolean(),
  author: z.enum(documentAuthors),
  /** The turn whose tool call wrote it; null when it was a person. */
  turnId: z.string().nullable(),
  /** The version whose text it brought back, with the authors that version had; null: it was written. */
  restoredFrom: z.number().int().nullable().default(null),
  /** ISO 8601, UTC. */
  createdAt: z.string(),
});
export type DocumentMeta = z.infer<typeof DocumentSchema>;

/** What became of a change. `unchanged`: it is as wanted already. `conflict`: it has another version than was expected. */
export const ChangeSchema = z.discriminatedUnion("status", [
  z.object({ status: z.enum(["saved", "unchanged"]), document: DocumentSchema }),
  /** `document` is the newest version, null when there was never one. */
  z.object({ status: z.literal("conflict"), document: DocumentSchema.nullable() }),
]);
export type DocumentChange = z.infer<typeof ChangeSchema>;

const change = {
  opId: z.uuid(),
  path: DocumentPath,
  author: z.enum(documentAuthors),
  turnId: z.uuid().optional(),
  /** The version that the change was made from; 0: there is no such document. Left out: whatever stands there. */
  expectedVersion: z.number().int().min(0).optional(),
};

export const documentList = request({
  subject: "store.document.list",
  server: "store",
  clients: ["agent-core", "channel-gateway"],
  doc: "The newest version of each document that changed after a position, without content, in the order of the changes. Removed ones are among them. The `change` of the last one is the next `since`.",
  input: z.object({ since: z.number().int().min(0), limit: z.number().int().min(1).max(1000) }),
  output: z.object({ documents: z.array(DocumentSchema), more: z.boolean() }),
});

/** Lines of a text: the first and the last of them, from 1. */
export const LineRangeSchema = z.object({ from: z.number().int().min(1), to: z.number().int().min(1) });
export type LineRange = z.infer<typeof LineRangeSchema>;

export const documentGet = request({
  subject: "store.document.get",
  server: "store",
  clients: ["agent-core", "channel-gateway"],
  doc: "One document with its content: the newest version, or the one that is named. Null when there is none, or when the newest version removed it.",
  input: z.object({
    path: DocumentPath,
    version: z.number().int().min(1).optional(),
    /** Asks for `untrusted` as well. */
    withUntrusted: z.boolean().optional(),
  }),
  output: z.object({
    document: DocumentSchema.extend({
      content: z.string(),
      /** The lines that outsiders had a hand in, in their order, blank ones between two of them included. Only where it was asked for. */
      untrusted: z.array(LineRangeSchema).optional(),
    }).nullable(),
  }),
});

export const documentPut = request({
  subject: "store.document.put",
  server: "store",
  clients: ["channel-gateway"],
  doc: "A new version of a document. INVALID_INPUT for a path that is no document's and for content with NUL, TOO_LARGE above 256 KiB.",
  input: z.object({ ...change, content: z.string() }),
  output: ChangeSchema,
});

export const documentDelete = request({
  subject: "store.document.delete",
  server: "store",
  clients: ["channel-gateway"],
  doc: "A version that removes a document; the ones before stay. NOT_FOUND when there is none.",
  input: z.object(change),
  output: ChangeSchema,
});

export const documentRestore = request({
  subject: "store.document.restore",
  server: "store",
  clients: ["channel-gateway"],
  doc: "An old text becomes the newest version, each line with the author that it had then: nobody vouches for it by this. A document that was removed is there again. NOT_FOUND for a version that never was or that removed the document.",
  input: z.object({
    opId: z.uuid(),
    path: DocumentPath,
    version: z.number().int().min(1),
    /** The newest version as the caller knows it. Left out: whatever stands there. */
    expectedVersion: z.number().int().min(0).optional(),
  }),
  output: ChangeSchema,
});

export const documentHistory = request({
  subject: "store.document.history",
  server: "store",
  clients: ["channel-gateway"],
  doc: "The versions of a document, newest first, without content.",
  input: z.object({
    path: DocumentPath,
    limit: z.number().int().min(1).max(500),
    /** Only versions before this one. */
    before: z.number().int().min(1).optional(),
  }),
  output: z.object({ versions: z.array(DocumentSchema), more: z.boolean() }),
});

export const documentChanged = z.object({
  path: z.string(),
  version: z.number().int(),
  change: z.number().int(),
  deleted: z.boolean(),
});
