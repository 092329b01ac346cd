// Documents for tool calls. Who may see a document and who is recorded as its author follow from the call's grant.
import { isPrivateDocument, WireError, type DocumentAuthor, type DocumentMeta, type Grant } from "@parley/contracts";
import { batchWrites, withClient, type Database, type PoolClient } from "../../db/database.ts";
import { forbidden, operationOf, requireDocuments, requireOpenCall } from "../../grants.ts";
import * as documents from "./documents.ts";
import { withGrant, type Handlers } from "../handler.ts";

export const callDocumentHandlers = {
  callDocumentList: withGrant(async ({ database }, grant, { since, limit }) => {
    const page = await asReader(database, grant, (client) => documents.listDocuments(client, { since, limit }));
    const last = page.documents.at(-1);
    const visible = page.documents.filter((document) => document === last || !isHidden(grant, document.path));
    // The reader continues from the last position of a page: a private document keeps its position, without its name.
    if (last === undefined || !isHidden(grant, last.path)) return { ...page, documents: visible };
    return { ...page, documents: [...visible.slice(0, -1), positionOnly(last)] };
  }),

  callDocumentGet: withGrant(({ database }, grant, input) => {
    if (input.version !== undefined && input.withAuthors !== true)
      throw new WireError(
        "INVALID_INPUT",
        "a call can read only the newest version of a document, and the line authors of older ones",
      );
    return asReader(database, grant, (client) => documents.getDocument(client, input), input.path);
  }),

  callDocumentPut: withGrant(async (context, grant, { opId, path, content, expectedVersion }) => {
    requireDocuments(grant, "write");
    documents.requireContent(path, content);
    const author: DocumentAuthor = grant.tainted ? "untrusted" : "agent";
    const input = {
      path,
      author,
      turnId: grant.turnId,
      ...(expectedVersion === undefined ? {} : { expectedVersion }),
    };
    return documents.change(context, "document_put", operationOf(grant, opId), async (client) => {
      await requireOpenCall(client, grant);
      return documents.write(client, input, { content, deleted: false });
    });
  }),
} satisfies Partial<Handlers>;

/** Runs `read` after the checks of the grant, in one batch with the check that the call has not ended; an error of that check wins. */
async function asReader<R>(
  database: Database,
  grant: Grant,
  read: (client: PoolClient) => Promise<R>,
  path?: string,
): Promise<R> {
  requireDocuments(grant, "read");
  if (path !== undefined && isHidden(grant, path)) throw forbidden(`${path} is private to the owner's conversations`);
  return withClient(database, async (client) => {
    const [checked, found] = await Promise.allSettled(
      batchWrites(client, () => [requireOpenCall(client, grant), read(client)] as const),
    );
    if (checked.status === "rejected") throw checked.reason;
    if (found.status === "rejected") throw found.reason;
    return found.value;
  });
}

/** Private documents exist only for calls in the owner's conversations. */
function isHidden({ audience }: Grant, path: string): boolean {
  return audience === "others" && isPrivateDocument(path);
}

/** The document without its content and name. It is marked as removed, so that no list shows it. */
function positionOnly(document: DocumentMeta): DocumentMeta {
  return {
    ...document,
    path: "",
    version: 0,
    sha256: "",
    bytes: 0,
    deleted: true,
    author: "agent",
    turnId: null,
    restoredFrom: null,
    createdAt: "",
  };
}
