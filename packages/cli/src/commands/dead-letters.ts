// The commands `parley dead-letters …`: messages whose turn was given up after too many crashes.

import type { Sender } from "@parley/contracts";

import { api } from "../cluster/api.ts";
import { listing, localTime, oneLine } from "../tables/format.ts";
import { operand, request, type CommandSpec } from "./command.ts";

const nameLetter = "Name a dead letter by its id; parley dead-letters lists them.";

const nameOf = ({ origin, contact }: Sender) => (origin === "user" ? (contact.name ?? contact.id) : origin);

export const deadLetterCommands: readonly CommandSpec[] = [
  request(
    {
      name: "dead-letters",
      summary: "list messages that were given up after too many crashes",
      details: "At most the newest 50; those that were retried are not listed.",
      examples: ["parley dead-letters", "parley dead-letters --json"],
    },
    async (gateway) => {
      const { deadLetters } = await gateway.run(api.work);
      const columns = {
        ID: ({ inboxId }: Letter) => inboxId,
        "GIVEN UP": ({ failedAt, receivedAt }: Letter) => localTime(failedAt ?? receivedAt),
        FROM: ({ from }: Letter) => oneLine(nameOf(from), 24),
        SESSION: ({ sessionTitle, sessionId }: Letter) => oneLine(sessionTitle ?? sessionId, 40),
        TEXT: ({ text }: Letter) => oneLine(text, 60),
      };
      type Letter = (typeof deadLetters)[number];
      return {
        data: { deadLetters },
        text: (paint) =>
          deadLetters.length === 0 ? "There are no dead letters." : listing(deadLetters, columns, paint),
      };
    },
  ),
  request(
    {
      name: "dead-letters retry",
      summary: "queue such a message again, at the end of its session's queue",
      operands: ["<id>"],
      examples: ["parley dead-letters retry 01a2042a-f9e2-7000-8000-000000000000"],
    },
    async (gateway, { positionals }) => {
      const data = await gateway.run(api.retryDeadLetter, { id: operand(positionals, nameLetter) });
      const when = data.repeated ? "It was queued before" : "It is queued";
      return { data, text: () => `${when}, as message ${data.inboxId}.` };
    },
  ),
];
