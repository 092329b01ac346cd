// `parley sessions`: all sessions, most recently used first.

import { asking } from "../control/call.ts";
import { sessionsTable } from "../sessions/text.ts";

export const run = asking(async (api, { values }) => {
  const text = values.text("text");
  const found = await api.sessions({
    ...(values.has("archived") ? { status: "archived" as const } : {}),
    ...(values.has("subagents") ? { subagents: true } : {}),
    ...(values.has("calls") ? { calls: true } : {}),
    ...(text === undefined ? {} : { text }),
  });
  return { data: { sessions: found.sessions }, text: (paint) => sessionsTable(found.sessions, paint) };
});
