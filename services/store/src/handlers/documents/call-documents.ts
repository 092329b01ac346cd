// Documents for tool calls: audience and author come from the call's grant.
import type { Bus } from "@parley/bus";
import {
  isPrivateDocument,
  type DocumentAuthor,
  type DocumentMeta,
  type Grant,
  type InputOf,
  type OutputOf,
  type store,
} from "@parley/contracts";
import { withClient, type Database } from "../../db/database.ts";
import { forbidden, operationOf, requireDocuments, requireOpen } from "../../grants.ts";
import { lines as linesOfVersion } from "./trust.ts";
import * as documents from "./documents.ts";

export async function list(
  database: Database,
  grant: Grant,
  { since, limit }: InputOf<typeof store.callDocumentList>,
): Promise<OutputOf<typeof store.callDocumentList>> {
  const page = await asReader(database, grant, () => documents.list(database, { since, limit }));
  const last = page.documents.at(-1);
  const visible = page.documents.filter((document) => document === last || !hides(grant, document.path));
  // The reader continues from the last position of a page: a private document keeps its position, without its name.
  if (last === undefined || !hides(grant, last.path)) return { ...page, documents: visible };
  return { ...page, documents: [...visible.slice(0, -1), withheld(last)] };
}

export async function get(
  database: Database,
  grant: Grant,
  { path }: InputOf<typeof store.callDocumentGet>,
): Promise<OutputOf<typeof store.callDocumentGet>> {
  return asReader(database, grant, () => documents.get(database, { path }), path);
}

export async function lines(
  database: Database,
  grant: Grant,
  { path, version }: InputOf<typeof store.callDocumentLines>,
): Promise<OutputOf<typeof store.callDocumentLines>> {
  return asReader(database, grant, () => linesOfVersion(database, { path, version }), path);
}

export async function put(
  database: Database,
  bus: Bus,
  grant: Grant,
  { opId, path, content, expectedVersion }: InputOf<typeof store.callDocumentPut>,
): Promise<OutputOf<typeof store.callDocumentPut>> {
  requireDocuments(grant, "write");
  documents.requireContent(path, content);
  const author: DocumentAuthor = grant.tainted ? "untrusted" : "agent";
  const input = {
    path,
    author,
    turnId: grant.turnId,
    ...(expectedVersion === undefined ? {} : { expectedVersion }),
  };
  return documents.change(database, bus, "document_put", operationOf(grant, opId), async (client) => {
    await requireOpen(client, grant);
    return documents.write(client, input, { content, deleted: false });
  });
}

/** Runs `read` in parallel with the check that the call is open; an error of the check takes precedence. */
async function asReader<R>(database: Database, grant: Grant, read: () => Promise<R>, path?: string): Promise<R> {
  requireDocuments(grant, "read");
  if (path !== undefined && hides(grant, path)) throw forbidden(`${path} is private to the owner's conversations`);
  const open = withClient(database, (client) => requireOpen(client, grant));
  const [checked, found] = await Promise.allSettled([open, read()]);
  if (checked.status === "rejected") throw checked.reason;
  if (found.status === "rejected") throw found.reason;
  return found.value;
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
