// Conversations with questions about them, in the format of LoCoMo: an array of samples. Each sample has the sessions of two
// people, and questions that name the turns that answer them.
import { z } from "zod";

export interface Sample {
  id: string;
  sessions: { number: number; at: Date; turns: { id: string; speaker: string; text: string }[] }[];
  questions: { text: string; evidence: string[] }[];
}

const Turn = z.object({
  speaker: z.string(),
  dia_id: z.string(),
  text: z.string().default(""),
  /** Description of a picture that was sent with the message. */
  blip_caption: z.string().optional(),
});
const Question = z.object({
  question: z.string(),
  evidence: z.array(z.string()).default([]),
  category: z.number().int().optional(),
});
const File = z.array(
  z.object({
    sample_id: z.string().optional(),
    conversation: z.record(z.string(), z.unknown()),
    qa: z.array(Question),
  }),
);

/** Questions of this category have no answer in the conversation. */
const adversarial = 5;

/** Throws ZodError for any other format. Leaves out questions without evidence among the turns. */
export function parseLocomo(json: unknown): Sample[] {
  return File.parse(json).map(({ sample_id: id, conversation, qa }, index) => {
    const sessions = Object.entries(conversation).flatMap(([name, value]) => {
      const number = /^session_(\d+)$/.exec(name)?.[1];
      if (number === undefined) return [];
      const at = dateOf(conversation[`${name}_date_time`], index, Number(number));
      return [{ number: Number(number), at, turns: z.array(Turn).parse(value).map(turnOf) }];
    });
    const known = new Set(sessions.flatMap(({ turns }) => turns.map((turn) => turn.id)));
    const questions = qa
      .filter(({ category }) => category !== adversarial)
      .map(({ question, evidence }) => ({
        text: question,
        evidence: evidenceOf(evidence).filter((id) => known.has(id)),
      }))
      .filter(({ evidence }) => evidence.length > 0);
    return { id: id ?? `sample-${index + 1}`, sessions: sessions.sort((a, b) => a.number - b.number), questions };
  });
}

/** Some entries hold several ids (`D8:6; D9:17`), have a typo (`D:11:26`), have a leading zero (`D30:05`), or name nothing (`D`). */
function evidenceOf(entries: readonly string[]): string[] {
  const named = entries.flatMap((entry) =>
    [...entry.matchAll(/D:?(\d+):(\d+)/g)].map(([, session, turn]) => `D${Number(session)}:${Number(turn)}`),
  );
  return [...new Set(named)];
}

function turnOf({ speaker, dia_id: id, text, blip_caption: caption }: z.infer<typeof Turn>) {
  return { id, speaker, text: caption === undefined ? text : `${text} [image: ${caption}]` };
}

/** Parses "1:56 pm on 8 May, 2023". A date that cannot be parsed becomes a separate day. */
function dateOf(written: unknown, sample: number, session: number): Date {
  const day =
    typeof written === "string"
      ? Date.parse(`${written.split(" on ").at(-1)?.replace(",", "") ?? ""} UTC`)
      : Number.NaN;
  return new Date(Number.isNaN(day) ? Date.UTC(2023, sample, session) : day);
}
