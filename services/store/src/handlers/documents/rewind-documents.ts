// Restores a document in a rewind: its earlier version becomes a new one, so no version is lost.
import { WireError, type DocumentAuthor, type OutputOf, type store } from "@parley/contracts";
import { withClient, type PoolClient } from "../../db/database.ts";
import { runTransaction } from "../../db/operation.ts";
import { startOf, documentsOf } from "../checkpoints/checkpoints.ts";
import { announce, lockDocuments, newest, write } from "./documents.ts";
import { withRewindPermit, type PermittedRewind } from "../checkpoints/rewind-permits.ts";
import type { Handlers } from "../handler.ts";

type Output = OutputOf<typeof store.rewindDocument>;

export const rewindDocumentHandlers = {
  rewindDocument: withRewindPermit(async (context, permit, { fence, path }) => {
    const { database } = context;
    if (fence === null) {
      return withClient(database, async (client) => ({ outcome: (await planOf(client, permit, path)).outcome }));
    }
    const { outcome, changed } = await runTransaction(database, async (client) => {
      await lockDocuments(client);
      await requireRunning(client, permit, fence);
      const plan = await planOf(client, permit, path);
      if (plan.outcome === "unchanged") return { outcome: plan.outcome, changed: undefined };
      await client.query(
        "INSERT INTO parley.checkpoint_documents (checkpoint_id, path, version) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
        [permit.rewindId, path, plan.from],
      );
      const { old } = plan;
      const done =
        old === null
          ? // A person requested the rewind.
            await write(client, { path, author: "owner" }, { content: "", deleted: true })
          : await write(
              client,
              { path, author: old.author },
              { content: old.content, deleted: false, restoredFrom: old.version },
            );
      return { outcome: plan.outcome, changed: done.status === "saved" ? done.document : undefined };
    });
    if (changed !== undefined) announce(context, changed);
    return { outcome };
  }),
} satisfies Partial<Handlers>;

interface Plan {
  outcome: Output["outcome"];
  /** The newest version; 0: there is no such document. */
  from: number;
  /** The version to restore; null: remove the document. */
  old: Text | null;
}

interface Text {
  version: number;
  content: string;
  author: DocumentAuthor;
}

async function planOf(client: PoolClient, permit: PermittedRewind, path: string): Promise<Plan> {
  const since = await startOf(client, permit);
  const wanted = (await documentsOf(client, permit, since)).find((document) => document.path === path);
  if (wanted === undefined) throw new WireError("NOT_FOUND", `rewind ${permit.rewindId} does not change ${path}`);
  const current = await newest(client, path);
  const now = current === null || current.deleted ? null : await textOf(client, path, current.version);
  const old = wanted.version === 0 ? null : await textOf(client, path, wanted.version);
  const from = now?.version ?? 0;
  if ((now?.content ?? null) === (old?.content ?? null)) return { outcome: "unchanged", from, old };
  return { outcome: old === null ? "removed" : "restored", from, old };
}

/** Null when there is no such version or it removed the document. */
async function textOf(client: PoolClient, path: string, version: number): Promise<Text | null> {
  const { rows } = await client.query<Text>(
    "SELECT version, content, author FROM parley.documents WHERE path = $1 AND version = $2 AND NOT deleted",
    [path, version],
  );
  return rows[0] ?? null;
}

async function requireRunning(client: PoolClient, { rewindId }: PermittedRewind, fence: number): Promise<void> {
  const { rowCount } = await client.query(
    "SELECT FROM parley.rewinds WHERE id = $1 AND fence = $2 AND state = 'running' FOR SHARE",
    [rewindId, fence],
  );
  if (rowCount !== 1) throw new WireError("FENCED", `rewind ${rewindId}: fence ${fence} is no longer valid`);
}
