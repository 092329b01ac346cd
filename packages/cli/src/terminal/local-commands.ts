// The commands that the terminal chat carries out itself.

import type { SessionSummary } from "@parley/contracts";

import { api } from "../cluster/api.ts";
import type { Gateway } from "../cluster/gateway.ts";
import { fetchStatus } from "../cluster/status.ts";
import type { Target } from "../cluster/target.ts";
import type { Paint } from "../io/io.ts";
import { oneLine } from "../tables/format.ts";
import { sessionsTable } from "../tables/sessions.ts";
import { statusText } from "../tables/status.ts";
import { helpText, localUsage } from "./help.ts";

interface LocalCommandDeps {
  readonly target: Target;
  readonly gateway: Gateway;
  readonly paint: Paint;
  /** Columns of the terminal. */
  readonly width: number;
}

/** What the command does: it leaves, clears the screen, or makes a text with line breaks. */
export type LocalCommand = "leave" | "clear" | ((deps: LocalCommandDeps) => Promise<string>);

const sessionLimit = 50;

/**
 * Null: the gateway carries it out, or it is no command. `exit` and `quit` alone leave too, as in other prompts, unless a question is
 * open that they could answer.
 */
export function localCommand(typed: string, isQuestionOpen: boolean): LocalCommand | null {
  if (!isQuestionOpen && /^(?:exit|quit)$/i.test(typed)) return "leave";
  const [name = "", argument = ""] = typed.split(/\s+/);
  switch (name.toLowerCase()) {
    case "/quit":
    case "/exit":
      return "leave";
    case "/clear":
      return "clear";
    case "/cluster":
      return async ({ target, paint, width }) => statusText(await fetchStatus(target), paint, width);
    case "/sessions":
      return async ({ gateway, paint, width }) => sessionsTable(await recentSessions(gateway), paint, width);
    case "/help": {
      const text = argument === "" ? helpText() : localUsage(argument);
      return text === null ? null : () => Promise.resolve(text);
    }
    default:
      return null;
  }
}

export async function recentSessions(gateway: Gateway): Promise<SessionSummary[]> {
  return (await gateway.run(api.sessions, { limit: sessionLimit })).sessions;
}

/** A session as a completion: by its title, or else by its id. */
export function sessionItem({ sessionId, title, key }: SessionSummary) {
  const label = oneLine(title ?? key, 60);
  return { value: title ?? sessionId, label, description: sessionId };
}
