// Documents: the owner reads and changes what defines the agent and what it remembers. Every holder of the API token is the owner, so
// their text counts as the owner's.
import { authorAt, linesOf, operations, store, type DocumentChange, type DocumentMeta } from "@parley/contracts";
import { omitUndefined } from "@parley/kit";
import { implement, OperationError } from "./operation.ts";

const pageSize = 1_000;

/** Throws a conflict that names the current version. */
function accepted(path: string, change: DocumentChange) {
  if (change.status !== "conflict") return { status: change.status, document: change.document };
  const { document } = change;
  const now =
    document === null ? "does not exist" : document.deleted ? "was removed" : `is at version ${document.version}`;
  throw new OperationError("conflict", `${path} ${now}: it was changed in the meantime; read it again and retry`);
}

export const documentOperations = [
  implement(operations.documentsList, async ({ removed }, { deps }) => {
    // Keyed by path, because a document that changes during paging is listed again.
    const found = new Map<string, DocumentMeta>();
    for (let since = 0, more = true; more;) {
      const page = await deps.bus.request(store.documentList, { since, limit: pageSize });
      for (const document of page.documents) found.set(document.path, document);
      since = page.documents.at(-1)?.change ?? since;
      more = page.more;
    }
    const documents = [...found.values()].filter(({ deleted }) => !deleted || removed === "true");
    return { documents: documents.sort((a, b) => (a.path < b.path ? -1 : 1)) };
  }),

  implement(operations.documentsGet, async ({ path, version, authors }, { deps }) => {
    const { document } = await deps.bus.request(store.documentGet, omitUndefined({ path, version }));
    if (document === null) {
      const which = version === undefined ? path : `${path} of version ${version}`;
      throw new OperationError("not_found", `there is no document ${which}`);
    }
    if (authors === "false") return { document };
    const written = await deps.bus.request(store.documentGet, { path, version: document.version, withAuthors: true });
    const lines = linesOf(document.content).map((_, index) => authorAt(written.document?.lineAuthors ?? "", index));
    return { document: { ...document, authors: lines } };
  }),

  implement(operations.documentsHistory, (query, { deps }) =>
    deps.bus.request(store.documentHistory, omitUndefined(query)),
  ),

  implement(operations.documentsPut, async (input, call) => {
    const opId = call.operationId(`document:put:${input.path}`);
    return accepted(input.path, await call.deps.bus.request(store.documentPut, omitUndefined({ ...input, opId })));
  }),

  implement(operations.documentsRestore, async ({ path, expectedVersion, version }, call) => {
    const opId = call.operationId(`document:restore:${path}`);
    const input = omitUndefined({ opId, path, expectedVersion, change: { do: "restore" as const, version } });
    return accepted(path, await call.deps.bus.request(store.documentRevise, input));
  }),

  implement(operations.documentsVouch, async ({ path, expectedVersion: seenVersion }, call) => {
    const opId = call.operationId(`document:vouch:${path}`);
    const input = { opId, path, change: { do: "trust" as const, seenVersion } };
    return accepted(path, await call.deps.bus.request(store.documentRevise, input));
  }),

  implement(operations.documentsDelete, async ({ path, expectedVersion, author }, call) => {
    const opId = call.operationId(`document:delete:${path}`);
    const input = omitUndefined({ opId, path, expectedVersion, change: { do: "delete" as const, author } });
    return accepted(path, await call.deps.bus.request(store.documentRevise, input));
  }),
];
