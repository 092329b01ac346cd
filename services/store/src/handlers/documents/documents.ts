// Documents: versions are only added; the newest version of a path is the document. Writers run one after another, so that the change
// counter grows in commit order and a reader of newer changes misses nothing.
import { createHash } from "node:crypto";
import {
  authorAt,
  documentChanged,
  linesOf,
  maxDocumentBytes,
  WireError,
  type DocumentAuthor,
  type DocumentChange,
  type DocumentMeta,
  type InputOf,
  type OutputOf,
  type store,
} from "@parley/contracts";
import { advisoryLocks } from "../../db/advisory-locks.ts";
import { withClient, type PoolClient, type Queryable } from "../../db/database.ts";
import { authorsOfNext, authorsOfVersion } from "../../memory/authors-of-version.ts";
import { maxRanges, untrustedRanges } from "../../memory/untrusted-lines.ts";
import { singleRow, runOperation } from "../../db/operation.ts";
import type { Handlers, StoreContext } from "../handler.ts";

/** Maximum UTF-8 bytes of content as JSON: the whole reply stays below the bus's limit of 512 KiB. */
const maxEncodedBytes = 480 * 1024;

const columns = `path, version, change, sha256, bytes, deleted, author, turn_id AS "turnId", created_at AS "createdAt", restored_from AS "restoredFrom"`;

type Document = NonNullable<OutputOf<typeof store.documentGet>["document"]>;
type ChangeInput = Omit<InputOf<typeof store.documentPut>, "opId" | "content">;

interface Wanted {
  content: string;
  deleted: boolean;
  /** Author of the new lines, if different from the version's author. */
  lineAuthor?: DocumentAuthor;
  /** The restored version. */
  restoredFrom?: number;
}

export const documentHandlers = {
  documentList: ({ database }, input) => listDocuments(database, input),
  documentGet: ({ database }, input) => withClient(database, (client) => getDocument(client, input)),

  documentPut(context, input) {
    requireContent(input.path, input.content);
    const wanted = { content: input.content, deleted: false };
    return change(context, "document_put", input.opId, (client) => write(client, input, wanted));
  },

  documentRevise(context, { opId, path, expectedVersion, change: wanted }) {
    return change(context, `document_${wanted.do}`, opId, (client) => {
      const target = expectedVersion === undefined ? { path } : { path, expectedVersion };
      switch (wanted.do) {
        case "delete":
          return write(client, { ...target, author: wanted.author }, { content: "", deleted: true });
        case "restore":
          return restore(client, target, wanted.version);
        default:
          wanted.do satisfies "trust";
          return markTrusted(client, path, wanted.seenVersion);
      }
    });
  },

  async documentHistory({ database }, { path, limit, before }) {
    const { rows } = await database.query<DocumentMeta>(
      `SELECT ${columns} FROM parley.documents WHERE path = $1 AND version < coalesce($2, 2147483647)
       ORDER BY version DESC LIMIT $3 + 1`,
      [path, before ?? null, limit],
    );
    return { versions: rows.slice(0, limit), more: rows.length > limit };
  },
} satisfies Partial<Handlers>;

export async function listDocuments(
  database: Queryable,
  { since, limit }: InputOf<typeof store.documentList>,
): Promise<OutputOf<typeof store.documentList>> {
  const { rows } = await database.query<DocumentMeta>({
    name: "document-list",
    text: `SELECT ${columns} FROM parley.documents WHERE latest AND change > $1 ORDER BY change LIMIT $2::int + 1`,
    values: [since, limit],
  });
  return { documents: rows.slice(0, limit), more: rows.length > limit };
}

export async function getDocument(
  client: PoolClient,
  { path, version, withUntrusted, withAuthors }: InputOf<typeof store.documentGet>,
): Promise<OutputOf<typeof store.documentGet>> {
  const { rows } = await client.query<Document>({
    name: "document-get",
    text: `SELECT ${columns}, content FROM parley.documents
       WHERE path = $1 AND CASE WHEN $2::int IS NULL THEN latest AND NOT deleted ELSE version = $2 END`,
    values: [path, version ?? null],
  });
  const document = rows[0];
  if (document === undefined) return { document: null };
  if (withUntrusted !== true && withAuthors !== true) return { document };
  const authors = await authorsOfVersion(client, document);
  if (withAuthors === true) return { document: { ...document, content: "", lineAuthors: authors } };
  return { document: { ...document, untrusted: untrustedRanges(document.content, authors, maxRanges) } };
}

/** An old text as the newest version. Throws NOT_FOUND. */
async function restore(
  client: PoolClient,
  target: Pick<ChangeInput, "path" | "expectedVersion">,
  version: number,
): Promise<DocumentChange> {
  const { rows } = await client.query<{ content: string; author: DocumentAuthor }>(
    "SELECT content, author FROM parley.documents WHERE path = $1 AND version = $2 AND NOT deleted",
    [target.path, version],
  );
  const old = rows[0];
  if (old === undefined) throw new WireError("NOT_FOUND", `version ${version} of ${target.path} has no text`);
  const wanted = { content: old.content, deleted: false, restoredFrom: version };
  return write(client, { ...target, author: old.author }, wanted);
}

/** A new version with the same text, whose lines are the owner's. Throws NOT_FOUND. */
async function markTrusted(client: PoolClient, path: string, seenVersion: number): Promise<DocumentChange> {
  await lockDocuments(client);
  const current = await newest(client, path);
  if (current === null || current.deleted) throw new WireError("NOT_FOUND", `there is no document ${path}`);
  if (current.version !== seenVersion) return { status: "conflict", document: current };
  const { rows } = await client.query<{ content: string }>(
    "SELECT content FROM parley.documents WHERE path = $1 AND version = $2",
    [path, current.version],
  );
  const { content } = singleRow(rows);
  const authors = await authorsOfVersion(client, current);
  const isOwners = linesOf(content).every((_, index) => authorAt(authors, index) === "owner");
  if (isOwners && current.author === "owner") return { status: "unchanged", document: current };
  return {
    status: "saved",
    document: await add(client, current, { path, author: "owner" }, { content, deleted: false }),
  };
}

/** Throws INVALID_INPUT or TOO_LARGE, with a message for the author. */
export function requireContent(path: string, content: string): void {
  if (content.includes("\0") || !content.isWellFormed())
    throw new WireError(
      "INVALID_INPUT",
      `${path}: a document must be text; this contains NUL or incomplete characters`,
    );
  const bytes = Buffer.byteLength(content);
  if (bytes > maxDocumentBytes)
    throw new WireError("TOO_LARGE", `${path}: ${bytes} bytes; a document has at most ${maxDocumentBytes}`);
  if (Buffer.byteLength(JSON.stringify(content)) > maxEncodedBytes)
    throw new WireError("TOO_LARGE", `${path}: too many lines or quotes for its size; split it into several documents`);
}

/** Runs a change once per operation id and publishes the new version after the commit. */
export async function change(
  context: StoreContext,
  name: string,
  opId: string,
  run: (client: PoolClient) => Promise<DocumentChange>,
): Promise<DocumentChange> {
  const done = await runOperation<DocumentChange>(
    context.database,
    { opId, epoch: null },
    {
      name,
      async run(client) {
        const result = await run(client);
        return result.status === "saved" ? { result, memo: result } : { result };
      },
    },
  );
  if (done.status === "saved") announce(context, done.document);
  return done;
}

/** Call after the commit. */
export function announce(
  { bus, documentsChanged }: StoreContext,
  { path, version, change: position, deleted }: DocumentMeta,
): void {
  documentsChanged();
  bus.publish(documentChanged, { path, version, change: position, deleted });
}

/** Excludes other writers of documents until the caller's transaction ends. */
export async function lockDocuments(client: PoolClient): Promise<void> {
  await client.query(`SELECT pg_advisory_xact_lock(${advisoryLocks.documents})`);
}

/** Writes a new version within the caller's transaction. */
export async function write(client: PoolClient, input: ChangeInput, wanted: Wanted): Promise<DocumentChange> {
  const { path, author, expectedVersion } = input;
  await lockDocuments(client);
  const current = await newest(client, path);
  if (expectedVersion !== undefined && !isExpected(current, expectedVersion))
    return { status: "conflict", document: current };
  if (wanted.deleted && (current === null || current.deleted))
    throw new WireError("NOT_FOUND", `there is no document ${path}`);
  if (current !== null && !current.deleted && !wanted.deleted && sameAs(current, wanted.content, author))
    return { status: "unchanged", document: current };
  return { status: "saved", document: await add(client, current, input, wanted) };
}

/** The newest version, which may have removed the document; null: there never was one. */
export async function newest(client: PoolClient, path: string): Promise<DocumentMeta | null> {
  const { rows } = await client.query<DocumentMeta>(
    `SELECT ${columns} FROM parley.documents WHERE path = $1 AND latest`,
    [path],
  );
  return rows[0] ?? null;
}

/** Adds a version after the newest one, regardless of its content. Requires `lockDocuments`. */
async function add(
  client: PoolClient,
  current: DocumentMeta | null,
  { path, author, turnId }: Pick<ChangeInput, "path" | "author" | "turnId">,
  wanted: Wanted,
): Promise<DocumentMeta> {
  const authors = await authorsOfNext(client, path, current, {
    content: wanted.content,
    author: wanted.lineAuthor ?? author,
    deleted: wanted.deleted,
    restoredFrom: wanted.restoredFrom ?? null,
  });
  await client.query("UPDATE parley.documents SET latest = false WHERE path = $1 AND latest", [path]);
  const added = await client.query<DocumentMeta>(
    `INSERT INTO parley.documents (path, version, content, bytes, sha256, deleted, author, turn_id, line_author, restored_from, authors)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) RETURNING ${columns}`,
    [
      path,
      (current?.version ?? 0) + 1,
      wanted.content,
      Buffer.byteLength(wanted.content),
      sha256Of(wanted.content),
      wanted.deleted,
      author,
      turnId ?? null,
      wanted.lineAuthor ?? null,
      wanted.restoredFrom ?? null,
      authors,
    ],
  );
  return singleRow(added.rows);
}

/** 0 also matches a removed document. */
function isExpected(current: DocumentMeta | null, expected: number): boolean {
  if (current === null) return expected === 0;
  return expected === current.version || (expected === 0 && current.deleted);
}

/** Most trusted first. */
const trust: readonly DocumentAuthor[] = ["owner", "import", "agent", "untrusted"];

/** The same text by a more trusted author is a new version, because it marks the text as trusted. */
function sameAs(current: DocumentMeta, content: string, author: DocumentAuthor): boolean {
  return current.sha256 === sha256Of(content) && trust.indexOf(author) >= trust.indexOf(current.author);
}

function sha256Of(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
