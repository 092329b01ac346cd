// Conversations with questions about them, in the format of LoCoMo: an array of samples, each with the sessions of one long
// acquaintance and questions that name the turns which answer them.
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
  /** What a picture that was sent along shows. */
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

/** Questions of this kind ask for what was never said. */
const adversarial = 5;

/** Throws ZodError for anything else than that format. Questions without evidence among the turns are left out. */
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

/** Some entries hold several (`D8:6; D9:17`), have slipped (`D:11:26`), carry a zero (`D30:05`), or name nothing (`D`). */
function evidenceOf(entries: readonly string[]): string[] {
  const named = entries.flatMap((entry) =>
    [...entry.matchAll(/D:?(\d+):(\d+)/g)].map(([, session, turn]) => `D${Number(session)}:${Number(turn)}`),
  );
  return [...new Set(named)];
}

function turnOf({ speaker, dia_id: id, text, blip_caption: caption }: z.infer<typeof Turn>) {
  return { id, speaker, text: caption === undefined ? text : `${text} [image: ${caption}]` };
}

/** "1:56 pm on 8 May, 2023"; what cannot be read has a day of its own. */
function dateOf(written: unknown, sample: number, session: number): Date {
  const day =
    typeof written === "string"
      ? Date.parse(`${written.split(" on ").at(-1)?.replace(",", "") ?? ""} UTC`)
      : Number.NaN;
  return new Date(Number.isNaN(day) ? Date.UTC(2023, sample, session) : day);
}
