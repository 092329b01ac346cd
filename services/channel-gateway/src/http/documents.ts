// Documents in the native API: the owner reads and changes what defines the agent and what it remembers. Every holder of the API token
// is the owner, so their text counts as the owner's.
import {
  authorAt,
  documentAuthors,
  DocumentSchema,
  linesOf,
  store,
  type DocumentChange,
  type DocumentMeta,
} from "@parley/contracts";
import { z } from "zod";
import type { HttpDeps } from "./deps.ts";
import type { Endpoints } from "./endpoint.ts";
import { HttpError } from "./errors.ts";
import { operationId } from "./operation-ref.ts";

const pageSize = 1_000;
const wholeNumber = z.coerce.number().int().min(1);
const DocumentPathText = z.string().min(1).max(512);
const Changed = z.object({
  /** `unchanged`: the document was already in the requested state. */
  status: z.enum(["saved", "unchanged"]),
  document: DocumentSchema,
});
const DocumentWithText = DocumentSchema.extend({
  content: z.string(),
  /** The author of each line, in order; only on request. */
  authors: z.array(z.enum(documentAuthors)).optional(),
});
const keyHeader = { "Idempotency-Key": "A repeated key is the same change." };

export function documentRoutes(endpoints: Endpoints, deps: HttpDeps): void {
  readingRoutes(endpoints, deps);
  changingRoutes(endpoints, deps);
}

function readingRoutes(endpoints: Endpoints, { bus }: HttpDeps): void {
  endpoints.add(
    {
      method: "GET",
      url: "/api/documents",
      summary: "All documents, without their texts, sorted by path",
      query: z.strictObject({
        /** Also include removed documents. */
        removed: z.enum(["true", "false"]).default("false"),
      }),
      answers: {
        200: { description: "The newest versions", schema: z.object({ documents: z.array(DocumentSchema) }) },
      },
    },
    async ({ query }) => {
      // Keyed by path, because a document that changes during paging is listed again.
      const found = new Map<string, DocumentMeta>();
      for (let since = 0, more = true; more;) {
        const page = await bus.request(store.documentList, { since, limit: pageSize });
        for (const document of page.documents) found.set(document.path, document);
        since = page.documents.at(-1)?.change ?? since;
        more = page.more;
      }
      const documents = [...found.values()].filter(({ deleted }) => !deleted || query.removed === "true");
      return { documents: documents.sort((a, b) => (a.path < b.path ? -1 : 1)) };
    },
  );

  endpoints.add(
    {
      method: "GET",
      url: "/api/documents/content",
      summary: "One document with its text, in the newest or an earlier version",
      query: z.strictObject({
        path: DocumentPathText,
        version: wholeNumber.optional(),
        /** Also return the author of each line. */
        authors: z.enum(["true", "false"]).default("false"),
      }),
      answers: {
        200: {
          description: "The document",
          schema: z.object({ document: DocumentWithText }),
        },
      },
    },
    async ({ query: { path, version, authors } }) => {
      const { document } = await bus.request(store.documentGet, {
        path,
        ...(version === undefined ? {} : { version }),
      });
      if (document === null) {
        const which = version === undefined ? path : `${path} of version ${version}`;
        throw new HttpError(404, "not_found", `there is no document ${which}`);
      }
      if (authors === "false") return { document };
      const written = await bus.request(store.documentLines, { path, version: document.version });
      const lines = linesOf(document.content).map((_, index) => authorAt(written.authors ?? "", index));
      return { document: { ...document, authors: lines } };
    },
  );

  endpoints.add(
    {
      method: "GET",
      url: "/api/documents/history",
      summary: "The versions of a document, newest first",
      query: z.strictObject({
        path: DocumentPathText,
        limit: wholeNumber.max(500).default(50),
        /** Only versions before this one. */
        before: wholeNumber.optional(),
      }),
      answers: { 200: { description: "The versions, without texts", schema: store.documentHistory.output } },
    },
    ({ query: { path, limit, before } }) =>
      bus.request(store.documentHistory, { path, limit, ...(before === undefined ? {} : { before }) }),
  );
}

function changingRoutes(endpoints: Endpoints, { bus }: HttpDeps): void {
  const target = {
    path: DocumentPathText,
    author: z.enum(["owner", "import"]).default("owner"),
    /** The version that the change is based on, 0 for a new document; omitted: no check. */
    expectedVersion: z.number().int().min(0).optional(),
  };

  endpoints.add(
    {
      method: "POST",
      url: "/api/documents/put",
      summary: "Write a document",
      headers: keyHeader,
      body: z.strictObject({ ...target, content: z.string() }),
      answers: {
        200: { description: "The new version", schema: Changed },
        409: { description: "conflict: the document has a different version; nothing was changed" },
      },
    },
    async ({ body, request }) =>
      accepted(
        body.path,
        await bus.request(store.documentPut, {
          ...changeOf(body),
          content: body.content,
          opId: operationId(request, `document:put:${body.path}`),
        }),
      ),
  );

  endpoints.add(
    {
      method: "POST",
      url: "/api/documents/restore",
      summary: "Restore an old version, with the author of each line",
      headers: keyHeader,
      body: z.strictObject({
        path: DocumentPathText,
        /** The version to restore. */
        version: z.number().int().min(1),
        /** The newest version known to the caller; omitted: no check. */
        expectedVersion: target.expectedVersion,
      }),
      answers: {
        200: { description: "The new version", schema: Changed },
        409: { description: "conflict: the document has a different version; nothing was changed" },
      },
    },
    async ({ body: { path, version, expectedVersion }, request }) =>
      accepted(
        path,
        await bus.request(store.documentRestore, {
          path,
          version,
          ...(expectedVersion === undefined ? {} : { expectedVersion }),
          opId: operationId(request, `document:restore:${path}`),
        }),
      ),
  );

  endpoints.add(
    {
      method: "POST",
      url: "/api/documents/vouch",
      summary: "Mark a document as trusted: every line counts as the owner's from now on",
      headers: keyHeader,
      body: z.strictObject({
        path: DocumentPathText,
        /** The version that the owner has read. */
        expectedVersion: z.number().int().min(1),
      }),
      answers: {
        200: { description: "The new version, with the same text", schema: Changed },
        404: { description: "not_found: no document has this path" },
        409: { description: "conflict: the document has a different version; nothing was changed" },
      },
    },
    async ({ body: { path, expectedVersion }, request }) =>
      accepted(
        path,
        await bus.request(store.documentVouch, {
          path,
          expectedVersion,
          opId: operationId(request, `document:vouch:${path}`),
        }),
      ),
  );

  endpoints.add(
    {
      method: "POST",
      url: "/api/documents/delete",
      summary: "Remove a document; its versions are kept",
      headers: keyHeader,
      body: z.strictObject(target),
      answers: {
        200: { description: "The version that marks the removal", schema: Changed },
        409: { description: "conflict: the document has a different version; nothing was changed" },
      },
    },
    async ({ body, request }) =>
      accepted(
        body.path,
        await bus.request(store.documentDelete, {
          ...changeOf(body),
          opId: operationId(request, `document:delete:${body.path}`),
        }),
      ),
  );
}

interface Target {
  path: string;
  author: "owner" | "import";
  expectedVersion?: number | undefined;
}

function changeOf({ path, author, expectedVersion }: Target) {
  return { path, author, ...(expectedVersion === undefined ? {} : { expectedVersion }) };
}

/** Throws a 409 that names the current version. */
function accepted(path: string, change: DocumentChange): z.infer<typeof Changed> {
  if (change.status !== "conflict") return { status: change.status, document: change.document };
  const { document } = change;
  const now =
    document === null ? "does not exist" : document.deleted ? "was removed" : `is at version ${document.version}`;
  throw new HttpError(409, "conflict", `${path} ${now}: it was changed in the meantime; read it again and retry`);
}
