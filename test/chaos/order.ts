// The order of answers in one conversation. Pure.

/** A message as it was stored. */
export interface StoredMessage {
  text: string;
  /** Its session: `/new` opens another one, which answers while messages wait in the one before. */
  session: string;
}

/**
 * What is wrong with the order in which a person saw answers, whose texts are those of their messages. Within a session they come in the
 * order of the messages; a session that was left by `/new` gets no later message. `expected`: the messages in order.
 */
export function orderProblems(
  expected: readonly string[],
  stored: readonly StoredMessage[],
  answers: readonly string[],
): string[] {
  const sessions = new Map(stored.map(({ text, session }) => [text, session]));
  const sessionOf = (text: string) => sessions.get(text) ?? "none";
  const inOrder = expected.map(sessionOf);
  const known = inOrder.filter((session) => session !== "none");
  const opened = known.filter((session, at) => session !== known[at - 1]);
  const returned =
    new Set(opened).size === opened.length ? [] : [`messages in a session that was left: ${opened.join(", ")}`];
  const unordered = [...new Set(inOrder)].flatMap((session) => {
    const seen = answers.filter((text) => sessionOf(text) === session);
    const order = seen.map((text) => expected.indexOf(text));
    const isOrdered = order.every((place, at) => at === 0 || place >= (order[at - 1] ?? 0));
    return isOrdered ? [] : [`answers out of order in one session: ${seen.join(", ")}`];
  });
  return [...returned, ...unordered];
}
