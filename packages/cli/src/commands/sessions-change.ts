// `parley sessions new|fork|rename|archive|resume`: operations on whole sessions.

import type { SessionSummary } from "@parley/contracts";

import { asking, defaultSession, type Shown } from "../control/call.ts";
import { UsageError } from "../errors.ts";
import { oneLine } from "../text.ts";

export const open = asking(async (api, { values, positionals }) =>
  shown("New", await api.open(values.text("route") ?? (await defaultSession(api)), positionals[0])),
);

export const fork = asking(async (api, { values, positionals }) =>
  shown("Copied to", await api.fork(named(positionals), positionals[1], values.text("route"))),
);

export const rename = asking(async (api, { positionals }) => {
  const session = named(positionals);
  const [, title] = positionals;
  if (title === undefined) throw new UsageError("Name a title: parley sessions rename <id> 'title'");
  return shown("Renamed", await api.update(session, { title }));
});

export const archive = asking(async (api, { values, positionals }) => {
  const archived = !values.has("undo");
  return shown(
    archived ? "Archived" : "Active again",
    await api.update(named(positionals), { status: archived ? "archived" : "active" }),
  );
});

export const resume = asking(async (api, { values, positionals }) =>
  shown("Resumed", await api.resume(named(positionals), values.text("route") ?? (await defaultSession(api)))),
);

function named(positionals: readonly string[]): string {
  const [session] = positionals;
  if (session === undefined) throw new UsageError("Name a session; parley sessions lists them.");
  return session;
}

function shown(what: string, answer: { readonly session: SessionSummary }): Shown {
  const { sessionId, title } = answer.session;
  return { data: answer, text: () => `${what}: ${sessionId}${title === null ? "" : `  ${oneLine(title, 80)}`}` };
}
