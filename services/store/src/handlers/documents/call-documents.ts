// Documents for tool calls: audience and author come from the call's grant.
import { isPrivateDocument, WireError, type DocumentAuthor, type DocumentMeta, type Grant } from "@parley/contracts";
import { inOneWrite, withClient, type Database, type PoolClient } from "../../db/database.ts";
import { forbidden, operationOf, requireDocuments, requireOpen } from "../../grants.ts";
import * as documents from "./documents.ts";
import { granted, type Handlers } from "../handler.ts";

export const callDocumentHandlers = {
  callDocumentList: granted(async ({ database }, grant, { since, limit }) => {
    const page = await asReader(database, grant, (client) => documents.listDocuments(client, { since, limit }));
    const last = page.documents.at(-1);
    const visible = page.documents.filter((document) => document === last || !hides(grant, document.path));
    // The reader continues from the last position of a page: a private document keeps its position, without its name.
    if (last === undefined || !hides(grant, last.path)) return { ...page, documents: visible };
    return { ...page, documents: [...visible.slice(0, -1), withheld(last)] };
  }),

  callDocumentGet: granted(({ database }, grant, input) => {
    if (input.version !== undefined && input.withAuthors !== true)
      throw new WireError("INVALID_INPUT", "a call reads the newest version; of an older one only the line authors");
    return asReader(database, grant, (client) => documents.getDocument(client, input), input.path);
  }),

  callDocumentPut: granted(async (context, grant, { opId, path, content, expectedVersion }) => {
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
      await requireOpen(client, grant);
      return documents.write(client, input, { content, deleted: false });
    });
  }),
} satisfies Partial<Handlers>;

/** Runs `read` together with the check that the call is open; an error of the check takes precedence. */
async function asReader<R>(
  database: Database,
  grant: Grant,
  read: (client: PoolClient) => Promise<R>,
  path?: string,
): Promise<R> {
  requireDocuments(grant, "read");
  if (path !== undefined && hides(grant, path)) throw forbidden(`${path} is private to the owner's conversations`);
  return withClient(database, async (client) => {
    const [checked, found] = await Promise.allSettled(
      inOneWrite(client, () => [requireOpen(client, grant), read(client)] as const),
    );
    if (checked.status === "rejected") throw checked.reason;
    if (found.status === "rejected") throw found.reason;
    return found.value;
  });
}

function hides({ audience }: Grant, path: string): boolean {
  return audience === "others" && isPrivateDocument(path);
}

/** Keeps only the position; as a removed document it appears in no list. */
function withheld(document: DocumentMeta): DocumentMeta {
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
