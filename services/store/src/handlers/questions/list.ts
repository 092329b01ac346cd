// Lists the questions that people have not answered yet.
import { store } from "@parley/contracts";
import type { Handlers } from "../handler.ts";
import { isJobs } from "./ask.ts";

interface Row {
  sessionId: string;
  sessionTitle: string | null;
  turnId: string;
  callId: string;
  /** JSON text: the question and its options. */
  body: string;
  askedAt: string;
  expiresAt: string;
  ownerAnswers: boolean;
}

/** As `answerWith` decides: the call waits, and its runner still asks. */
const open = `
  SELECT q.session_id AS "sessionId", sessions.title AS "sessionTitle", q.turn_id AS "turnId", s.call_id AS "callId", q.body,
    q.asked_at AS "askedAt", q.expires_at AS "expiresAt", q.trust = 'owner' AND NOT ${isJobs} AS "ownerAnswers"
  FROM parley.questions q
    JOIN parley.turns t ON t.id = q.turn_id AND t.state = 'running'
    JOIN parley.steps s ON s.turn_id = q.turn_id AND s.n = q.n AND s.result IS NULL
    JOIN parley.sessions ON sessions.id = q.session_id
  WHERE q.state = 'open' AND q.expires_at > now() AND (q.held_until IS NULL OR q.held_until > now())
  ORDER BY q.asked_at DESC LIMIT $1`;

export const questionListHandlers = {
  async questionList({ database }, { limit }) {
    const { rows } = await database.query<Row>(open, [limit]);
    return {
      questions: rows.map(({ body, ...row }) => {
        const { question, options } = JSON.parse(body) as { question: string; options: string[] };
        return { ...row, question: question.slice(0, store.listedQuestionCharacters).toWellFormed(), options };
      }),
    };
  },
} satisfies Partial<Handlers>;
