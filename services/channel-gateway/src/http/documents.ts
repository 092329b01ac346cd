// Documents of the native API: what the agent is and knows, for its owner to read and change. The text of a document is data of
// the caller: whoever holds the token is the owner.
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
  /** Nothing was done where it is as wanted already. */
  status: z.enum(["saved", "unchanged"]),
  document: DocumentSchema,
});
const DocumentWithText = DocumentSchema.extend({
  content: z.string(),
  /** Of each line, in their order; only where they were asked for. */
  authors: z.array(z.enum(documentAuthors)).optional(),
});
const keyHeader = { "Idempotency-Key": "The same key again is the same change." };

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
        /** Also those that were removed. */
        removed: z.enum(["true", "false"]).default("false"),
      }),
      answers: {
        200: { description: "The newest versions", schema: z.object({ documents: z.array(DocumentSchema) }) },
      },
    },
    async ({ query }) => {
      // By path: one that changes while the pages are read comes again.
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
      summary: "One document with its text, as it is now or as it was",
      query: z.strictObject({
        path: DocumentPathText,
        version: wholeNumber.optional(),
        /** Also who wrote which line. */
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
    /** The version that the change was made from, 0 for a new document; left out, whatever stands there. */
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
        409: { description: "It has another version than was expected; nothing was changed" },
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
      summary: "Bring back an old version, each line with the author that it had then",
      headers: keyHeader,
      body: z.strictObject({
        path: DocumentPathText,
        /** Whose text it is to have again. */
        version: z.number().int().min(1),
        /** The newest version as the caller knows it; left out, whatever stands there. */
        expectedVersion: target.expectedVersion,
      }),
      answers: {
        200: { description: "The new version", schema: Changed },
        409: { description: "It has another version than was expected; nothing was changed" },
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
      summary: "Vouch for a document as it stands: every line of it counts as the owner's from then on",
      headers: keyHeader,
      body: z.strictObject({
        path: DocumentPathText,
        /** The version that was read. */
        expectedVersion: z.number().int().min(1),
      }),
      answers: {
        200: { description: "The new version, of the same text", schema: Changed },
        404: { description: "There is no such document" },
        409: { description: "It has another version than was read; nothing was changed" },
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
      summary: "Remove a document; its versions stay",
      headers: keyHeader,
      body: z.strictObject(target),
      answers: {
        200: { description: "The version that removed it", schema: Changed },
        409: { description: "It has another version than was expected; nothing was changed" },
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

/** Throws a 409 that names the version that stands there. */
function accepted(path: string, change: DocumentChange): z.infer<typeof Changed> {
  if (change.status !== "conflict") return { status: change.status, document: change.document };
  const { document } = change;
  const now =
    document === null ? "does not exist" : document.deleted ? "was removed" : `is at version ${document.version}`;
  throw new HttpError(409, "conflict", `${path} ${now}: it was changed by somebody else`);
}
