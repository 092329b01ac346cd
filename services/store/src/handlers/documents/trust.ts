// Authors of a document's lines, and marking all lines as trusted by the owner.
import { authorAt, linesOf, WireError, type InputOf, type OutputOf, type store } from "@parley/contracts";
import { withClient, type Database } from "../../db/database.ts";
import { authorsOfVersion } from "../../memory/authors-of-version.ts";
import { singleRow } from "../../db/operation.ts";
import { add, change, lockDocuments, newest } from "./documents.ts";
import { type Handlers } from "../handler.ts";

export const trustHandlers = {
  documentLines: ({ database }, input) => linesOfVersion(database, input),

  documentVouch(context, { opId, path, expectedVersion }) {
    return change(context, "document_vouch", opId, async (client) => {
      await lockDocuments(client);
      const current = await newest(client, path);
      if (current === null || current.deleted) throw new WireError("NOT_FOUND", `there is no document ${path}`);
      if (current.version !== expectedVersion) return { status: "conflict", document: current };
      const { rows } = await client.query<{ content: string }>(
        "SELECT content FROM parley.documents WHERE path = $1 AND version = $2",
        [path, current.version],
      );
      const { content } = singleRow(rows);
      const authors = await authorsOfVersion(client, current);
      const isOwners = linesOf(content).every((_, index) => authorAt(authors, index) === "owner");
      if (isOwners && current.author === "owner") return { status: "unchanged", document: current };
      // A new version with the same text by the owner makes every line the owner's.
      const document = await add(client, current, { path, author: "owner" }, { content, deleted: false });
      return { status: "saved", document };
    });
  },
} satisfies Partial<Handlers>;

export async function linesOfVersion(
  database: Database,
  { path, version }: InputOf<typeof store.documentLines>,
): Promise<OutputOf<typeof store.documentLines>> {
  return withClient(database, async (client) => {
    const { rowCount } = await client.query("SELECT FROM parley.documents WHERE path = $1 AND version = $2", [
      path,
      version,
    ]);
    return { authors: rowCount === 0 ? null : await authorsOfVersion(client, { path, version }) };
  });
}
