// Memory notes: appending and removing lines. A change applies to the note's current text, so that concurrent writers lose nothing, and the
// index is updated in the same commit.
import {
  authorAt,
  linesOf,
  type DocumentAuthor,
  type DocumentMeta,
  type MemorySettings,
  type OutputOf,
  type store,
} from "@parley/contracts";
import type { PoolClient } from "../../db/database.ts";
import { leastTrusted, lineAuthors } from "../../memory/authors.ts";
import { lockIndex } from "../../memory/refresh-index.ts";
import { indexDocument } from "../../memory/index-documents.ts";
import { audienceOfTurn } from "../../memory/scope.ts";
import { runOperation } from "../../db/operation.ts";
import { announce, lockDocuments, requireContent, write } from "../documents/documents.ts";
import type { Handlers, StoreContext } from "../handler.ts";

type Appended = OutputOf<typeof store.memoryAppend>;
type Forgotten = OutputOf<typeof store.memoryForget>;

const notTheOwners = "memory belongs to the owner: it can be written only in the owner's conversations";

export const noteHandlers = {
  memoryAppend(context, input) {
    return change<Appended>(context, "memory_append", input, async (client) => {
      const note = await open(client, context.memorySettings, input);
      if ("refused" in note) return { answer: { status: "refused", reason: note.refused } };
      const before = note.text === null ? input.heading : note.text.replace(/\n*$/, "\n");
      const text = `${before}${input.text.trim()}\n`;
      const saved = await save(client, context.memorySettings, input, note, text);
      if (saved === undefined) return { answer: { status: "missing", reason: `${input.path} was not changed` } };
      const toLine = linesOf(text).length;
      const fromLine = toLine - linesOf(input.text.trim()).length + 1;
      return { answer: { status: "saved", version: saved.version, fromLine, toLine }, saved };
    });
  },

  memoryForget(context, input) {
    return change<Forgotten>(context, "memory_forget", input, async (client) => {
      const note = await open(client, context.memorySettings, input);
      if ("refused" in note) return { answer: { status: "refused", reason: note.refused } };
      if (note.text === null) return { answer: { status: "missing", reason: `there is no note ${input.path}` } };
      const { what } = input;
      const lines = linesOf(note.text);
      const isRemoved = (line: string, index: number) =>
        what.by === "lines"
          ? index + 1 >= what.from && index + 1 <= what.to
          : line.toLowerCase().includes(what.text.toLowerCase());
      const removed = lines.filter(isRemoved);
      if (removed.length === 0) {
        const reason =
          what.by === "lines"
            ? `${input.path} has ${lines.length} lines`
            : `no line of ${input.path} contains that text`;
        return { answer: { status: "missing", reason } };
      }
      const text = lines
        .filter((line, index) => !isRemoved(line, index))
        .map((line) => `${line}\n`)
        .join("");
      const saved = await save(client, context.memorySettings, input, note, text);
      if (saved === undefined) return { answer: { status: "missing", reason: `${input.path} was not changed` } };
      const quoted = removed.slice(0, maxQuoted).map((line) => line.slice(0, maxQuotedChars));
      return { answer: { status: "saved", version: saved.version, removed: quoted }, saved };
    });
  },
} satisfies Partial<Handlers>;

/** Maximum removed lines quoted in the reply, and maximum characters of each. */
const maxQuoted = 20;
const maxQuotedChars = 300;

/** Runs a change once per operation id and publishes the new version after the commit. */
async function change<A>(
  context: StoreContext,
  name: string,
  guard: { opId: string; epoch: number },
  run: (client: PoolClient) => Promise<{ answer: A; saved?: DocumentMeta }>,
): Promise<A> {
  let saved: DocumentMeta | undefined;
  const answer = await runOperation<A>(context.database, guard, {
    name,
    async run(client) {
      const done = await run(client);
      saved = done.saved;
      return { result: done.answer, memo: done.answer };
    },
  });
  if (saved !== undefined) announce(context, saved);
  return answer;
}

interface Note {
  /** Null: the note does not exist. */
  text: string | null;
  authors: string;
}

/** The current note, locked until the transaction ends; refused outside of the owner's conversations. */
async function open(
  client: PoolClient,
  { language }: MemorySettings,
  { turnId, path }: { turnId: string; path: string },
): Promise<Note | { refused: string }> {
  const { kind } = await audienceOfTurn(client, turnId);
  if (kind !== "owner") return { refused: notTheOwners };
  await lockDocuments(client);
  await lockIndex(client);
  const authors = await indexDocument(client, language, path);
  const { rows } = await client.query<{ content: string }>(
    "SELECT content FROM parley.documents WHERE path = $1 AND latest AND NOT deleted",
    [path],
  );
  return { text: rows[0]?.content ?? null, authors };
}

/** Undefined when nothing changed. The version is untrusted as long as it contains untrusted lines. */
async function save(
  client: PoolClient,
  { language }: MemorySettings,
  { path, turnId, author }: { path: string; turnId: string; author: DocumentAuthor },
  note: Note,
  text: string,
): Promise<DocumentMeta | undefined> {
  requireContent(path, text);
  const before = note.text === null ? undefined : { text: note.text, authors: note.authors };
  const authors = lineAuthors(before, text, author);
  const written = linesOf(text).flatMap((line, index) => (line.trim() === "" ? [] : [authorAt(authors, index)]));
  const version = leastTrusted([author, ...written]);
  const wanted = { content: text, deleted: false, lineAuthor: author };
  const changed = await write(client, { path, turnId, author: version }, wanted);
  if (changed.status !== "saved") return undefined;
  await indexDocument(client, language, path);
  return changed.document;
}
