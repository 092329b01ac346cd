// Stores conversations, sends questions to the memory search, and counts how often it finds a turn that answers the question.
import { randomUUID } from "node:crypto";
import type { Bus } from "@parley/bus";
import { store } from "@parley/contracts";
import { Client } from "pg";
import type { Sample } from "./locomo.ts";

export interface Recall {
  questions: number;
  /** Fractions, 0 to 1: an answering turn is among the first 5, among the first 10; its session is among the first 5. */
  anyHit5: number;
  anyHit10: number;
  session5: number;
  /** Duration of one question, in milliseconds. */
  medianMs: number;
}

/** A turn's id and the number of its session. */
interface Place {
  turn: string;
  session: number;
}

/** Returns the first ten turns for a question, best first. */
export type Find = (question: string) => Promise<Place[]>;

interface Loaded {
  sample: Sample;
  /** Searches as the person who owns the conversations. */
  askingTurn: string;
  places: Map<string, Place>;
}

/** Stores each sample as the conversations of one person, who sees only those. `ownerUrl`: URL of the role with all write permissions. */
export async function loadConversations(ownerUrl: string, samples: readonly Sample[]): Promise<Loaded[]> {
  const client = new Client({ connectionString: ownerUrl });
  await client.connect();
  try {
    const loaded: Loaded[] = [];
    for (const sample of samples) loaded.push(await loadSample(client, sample));
    return loaded;
  } finally {
    await client.end();
  }
}

async function loadSample(client: Client, sample: Sample): Promise<Loaded> {
  const places = new Map<string, Place>();
  for (const session of sample.sessions) {
    const sessionId = await openSession(client, session.turns.length);
    const said = session.turns.map(({ speaker, text }) => ({ speaker, text }));
    await addTurns(client, sample.id, sessionId, session.at, said);
    for (const [index, { id }] of session.turns.entries())
      places.set(`sessions/${sessionId} ${index + 1}`, { turn: id, session: session.number });
  }
  const asking = await openSession(client, 1);
  const [askingTurn = ""] = await addTurns(client, sample.id, asking, new Date(), [{ speaker: "asker", text: "?" }]);
  return { sample, askingTurn, places };
}

async function openSession(client: Client, seq: number): Promise<string> {
  const id = randomUUID();
  await client.query("INSERT INTO parley.sessions (id, key, seq) VALUES ($1, $2, $3)", [id, `recall:${id}`, seq]);
  return id;
}

/** One turn of the loop for each message. */
async function addTurns(
  client: Client,
  person: string,
  sessionId: string,
  at: Date,
  said: readonly { speaker: string; text: string }[],
): Promise<string[]> {
  const turnIds = said.map(() => randomUUID());
  const inboxIds = said.map(() => randomUUID());
  const parts = said.map(({ text }) => JSON.stringify([{ type: "text", text }]));
  const senders = said.map(({ speaker }) =>
    JSON.stringify({
      channel: "recall",
      account: "default",
      conversation: person,
      contact: { id: person, name: speaker },
      role: "user",
      origin: "user",
    }),
  );
  const numbers = said.map((_, index) => index + 1);
  await client.query(
    `INSERT INTO parley.turns (id, session_id, inbox_id, state, epoch, trust, finished_at)
     SELECT t.id, $1, t.inbox, 'done', 0, 'user', now() FROM unnest($2::uuid[], $3::uuid[]) AS t (id, inbox)`,
    [sessionId, turnIds, inboxIds],
  );
  await client.query(
    `INSERT INTO parley.inbox (id, session_id, seq, channel, account, external_id, priority, parts, sender, state, turn_id, trust)
     SELECT i.id, $1, i.n, 'recall', 'default', i.id::text, 1, i.parts, i.sender, 'done', i.turn, 'user'
     FROM unnest($2::uuid[], $3::uuid[], $4::int[], $5::text[], $6::text[]) AS i (id, turn, n, parts, sender)`,
    [sessionId, inboxIds, turnIds, numbers, parts, senders],
  );
  await client.query(
    `INSERT INTO parley.messages (session_id, seq, turn_id, role, parts, sender, created_at)
     SELECT $1, m.n, m.turn, 'user', m.parts, m.sender, $6 FROM unnest($2::uuid[], $3::int[], $4::text[], $5::text[]) AS m (turn, n, parts, sender)`,
    [sessionId, turnIds, numbers, parts, senders, at],
  );
  return turnIds;
}

/** The store's own search, over the bus. */
export function findInMemory(core: Bus, { askingTurn, places }: Loaded): Find {
  return async (query) => {
    const { hits } = await core.request(store.memorySearch, { turnId: askingTurn, query, limit: 10 });
    return hits.flatMap((hit) => places.get(`${hit.path} ${hit.seq ?? 0}`) ?? []);
  };
}

/** PostgreSQL's own ranking: any of the search terms, `ts_rank_cd`, over the same chunks. */
export function findByTsRank(client: Client, { places, sample }: Loaded): Find {
  return async (query) => {
    const { rows } = await client.query<{ path: string; seq: number }>(
      `SELECT 'sessions/' || session_id AS path, seq::int AS seq FROM parley.memory_chunks,
         to_tsvector('english', coalesce(speaker || ': ', '') || text) AS v,
         to_tsquery('english', (SELECT string_agg(quote_literal(lexeme), '|') FROM unnest(to_tsvector('english', $2)))) AS q
       WHERE scope = $1 AND v @@ q ORDER BY ts_rank_cd(v, q) DESC, id LIMIT 10`,
      [`said:${JSON.stringify(["recall", "default", sample.id])}`, query],
    );
    return rows.flatMap(({ path, seq }) => places.get(`${path} ${seq}`) ?? []);
  };
}

export async function measureRecall(loaded: readonly Loaded[], finder: (one: Loaded) => Find): Promise<Recall> {
  const durations: number[] = [];
  let hits5 = 0;
  let hits10 = 0;
  let sessions5 = 0;
  for (const one of loaded) {
    const find = finder(one);
    const sessionOf = new Map([...one.places.values()].map(({ turn, session }) => [turn, session]));
    for (const { text, evidence } of one.sample.questions) {
      const begin = performance.now();
      const found = await find(text);
      durations.push(performance.now() - begin);
      const sessions = new Set(evidence.map((turn) => sessionOf.get(turn)));
      if (found.slice(0, 5).some(({ turn }) => evidence.includes(turn))) hits5 += 1;
      if (found.slice(0, 10).some(({ turn }) => evidence.includes(turn))) hits10 += 1;
      if (found.slice(0, 5).some(({ session }) => sessions.has(session))) sessions5 += 1;
    }
  }
  const questions = durations.length;
  const medianMs = durations.sort((a, b) => a - b)[Math.floor(questions / 2)] ?? Number.NaN;
  return {
    questions,
    anyHit5: hits5 / questions,
    anyHit10: hits10 / questions,
    session5: sessions5 / questions,
    medianMs,
  };
}
