// Documents: the agent's instructions and knowledge as versioned text in the store, so that every replica reads the same.
import { z } from "zod";
import { storeRequest } from "./shared.ts";

/** Documents in the workspace's root, in their order in the prompt. */
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

/** Whether a document is about the owner: other people's conversations cannot read it. */
export function isPrivateDocument(path: string): boolean {
  return path === "USER.md" || path === "MEMORY.md" || path === "HEARTBEAT.md" || path.startsWith("memory/");
}

/** Maximum UTF-8 bytes of one document. */
export const maxDocumentBytes = 256 * 1024;
const maxPathCharacters = 256;
const maxPathParts = 12;

/** Why a path is not a valid document path, in one sentence; null when it is valid. */
export function documentPathProblem(path: string): string | null {
  const parts = path.split("/");
  const [first = "", second] = parts;
  if (path.length > maxPathCharacters || parts.length > maxPathParts)
    return `a document path has at most ${maxPathCharacters} characters and ${maxPathParts} parts`;
  if (!path.isWellFormed() || /\p{Cc}/u.test(path) || parts.some((part) => part === "" || /^\.\.?$/.test(part)))
    return "a document path is relative, without empty parts, . or .., and without control characters";
  if (parts.length === 1 && rootDocuments.some((name) => name === path)) return null;
  if (first === "memory" && second !== undefined)
    return path.endsWith(".md") ? null : "notes below memory/ are Markdown: their names must end in .md";
  if (first === "skills" && second !== undefined)
    return parts.length > 2
      ? null
      : "a skill is a folder: skills/<name>/SKILL.md and its other files in the same folder";
  return `documents are only ${rootDocuments.join(", ")}, memory/….md and skills/<name>/…`;
}

export const DocumentPath = z.string().superRefine((path, context) => {
  const problem = documentPathProblem(path);
  if (problem !== null) context.addIssue({ code: "custom", message: `"${path.slice(0, 300)}": ${problem}` });
});

/**
 * Who wrote a version. `owner`: a person through the API or the CLI. `import`: a person, as part of a folder import. `agent`: the
 * agent's file tools. `untrusted`: the agent, in a turn that had read untrusted content.
 */
export const documentAuthors = ["owner", "import", "agent", "untrusted"] as const;
export type DocumentAuthor = (typeof documentAuthors)[number];

export const DocumentSchema = z.object({
  path: z.string(),
  /** From 1; every change creates a new version, including a removal. */
  version: z.number().int(),
  /** Position among the changes of all documents, for `since`. */
  change: z.number().int(),
  /** Hash of the UTF-8 bytes, hexadecimal. */
  sha256: z.string(),
  bytes: z.number().int(),
  /** This version removed the document. */
  deleted: z.boolean(),
  author: z.enum(documentAuthors),
  /** The turn whose tool call wrote it; null when a person wrote it. */
  turnId: z.string().nullable(),
  /** The version that it restored, including the authors of its lines; null: not a restoration. */
  restoredFrom: z.number().int().nullable().default(null),
  /** ISO 8601, UTC. */
  createdAt: z.string(),
});
export type DocumentMeta = z.infer<typeof DocumentSchema>;

/** The outcome of a change. `unchanged`: the document already has the requested state. `conflict`: its version is not the expected one. */
export const ChangeSchema = z.discriminatedUnion("status", [
  z.object({ status: z.enum(["saved", "unchanged"]), document: DocumentSchema }),
  /** `document` is the newest version, null when there never was one. */
  z.object({ status: z.literal("conflict"), document: DocumentSchema.nullable() }),
]);
export type DocumentChange = z.infer<typeof ChangeSchema>;

export const documentList = storeRequest({
  subject: "store.document.list",
  clients: ["agent-core", "channel-gateway"],
  doc: "List the newest version of each document that changed after a position, without content, in the order of the changes, including removed ones. The `change` of the last one is the next `since`.",
  input: z.object({ since: z.number().int().min(0), limit: z.number().int().min(1).max(1000) }),
  output: z.object({ documents: z.array(DocumentSchema), more: z.boolean() }),
});

/** Lines of a text, from 1: the first and the last, inclusive. */
export const LineRangeSchema = z.object({ from: z.number().int().min(1), to: z.number().int().min(1) });
export type LineRange = z.infer<typeof LineRangeSchema>;

export const documentGet = storeRequest({
  subject: "store.document.get",
  clients: ["agent-core", "channel-gateway"],
  doc: "Get one document with its content: the newest version or the given one. Null when there is none, or when the newest version removed it.",
  input: z.object({
    path: DocumentPath,
    version: z.number().int().min(1).optional(),
    /** Requests `untrusted` as well. */
    withUntrusted: z.boolean().optional(),
    /** Requests `lineAuthors` instead of the content: both could exceed one reply. */
    withAuthors: z.boolean().optional(),
  }),
  output: z.object({
    document: DocumentSchema.extend({
      /** Empty when `lineAuthors` is requested. */
      content: z.string(),
      /** The lines that are or may be derived from untrusted content, in order, including blank lines between two of them. Only if requested. */
      untrusted: z.array(LineRangeSchema).optional(),
      /** The author of each line, one letter a line: o(wner), i(mport), a(gent), u(ntrusted). Only if requested. */
      lineAuthors: z.string().optional(),
    }).nullable(),
  }),
});

export const documentPut = storeRequest({
  subject: "store.document.put",
  clients: ["channel-gateway"],
  doc: "Save a new version of a document. INVALID_INPUT for an invalid document path and for content with NUL, TOO_LARGE above 256 KiB.",
  input: z.object({
    opId: z.uuid(),
    path: DocumentPath,
    author: z.enum(documentAuthors),
    turnId: z.uuid().optional(),
    /** The version that the change is based on; 0: there is no such document. Omitted: any version. */
    expectedVersion: z.number().int().min(0).optional(),
    content: z.string(),
  }),
  output: ChangeSchema,
});

export const documentRevise = storeRequest({
  subject: "store.document.revise",
  clients: ["channel-gateway"],
  doc: "Make a new version from what the store has. `delete` removes the document; earlier versions stay. `restore` makes an old version the newest one: each line keeps the author that it had then, and a removed document exists again. `trust` marks every line of the current text as the owner's; `unchanged` when all lines already are. NOT_FOUND when there is no such document, or for a version that never existed or that removed the document.",
  input: z.object({
    opId: z.uuid(),
    path: DocumentPath,
    /** The newest version as the caller knows it. Omitted: any version. */
    expectedVersion: z.number().int().min(0).optional(),
    change: z.discriminatedUnion("do", [
      z.object({ do: z.literal("delete"), author: z.enum(documentAuthors) }),
      z.object({ do: z.literal("restore"), version: z.number().int().min(1) }),
      /** `seenVersion`: the newest version, which the owner has read: only text that they have seen can be marked as trusted. */
      z.object({ do: z.literal("trust"), seenVersion: z.number().int().min(1) }),
    ]),
  }),
  output: ChangeSchema,
});

export const documentHistory = storeRequest({
  subject: "store.document.history",
  clients: ["channel-gateway"],
  doc: "List the versions of a document, newest first, without content.",
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
