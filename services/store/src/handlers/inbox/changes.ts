// Changes of stored input by its sender on the platform: edits and deletions. Only queued input changes; what a turn has read stays.
import type { InboundMessage, OutputOf, store } from "@parley/contracts";
import type { PoolClient } from "../../db/database.ts";
import { senderOf } from "../../db/mappers.ts";
import { runTransaction } from "../../db/operation.ts";
import type { Handlers } from "../handler.ts";
import { changeContext } from "./group-context.ts";

type Parts = InboundMessage["parts"];

interface Row {
  id: string;
  state: OutputOf<typeof store.inboxGet>["state"];
  parts: string;
  sender: string;
  running: boolean;
}

const previewChars = 2_000;

export const changeHandlers = {
  async inboxChange({ database }, input) {
    const { channel, account, conversation, messageId, contactId, change } = input;
    const place = [channel, account, JSON.stringify(messageId), JSON.stringify(conversation)];
    return runTransaction(database, async (client): Promise<OutputOf<typeof store.inboxChange>> => {
      const row = await lockRow(client, place);
      // Only the sender edits a message; others, such as moderators of a group, may delete it.
      if (row === undefined) await changeContext(client, input);
      if (row === undefined || (change.do === "text" && senderOf(row.sender).contact.id !== contactId))
        return { outcome: "unknown", running: false, text: "" };
      const parts = JSON.parse(row.parts) as Parts;
      // The adapter's message has one text; later ones are notes about files.
      const own = parts.findIndex((part) => part.type === "text");
      const text = textAt(parts, own);
      const found = { running: row.running, text: text.slice(0, previewChars) };
      // Platforms also report edits that only add a preview of a link.
      if (change.do === "text" && change.text === text) return { outcome: "unchanged", ...found };
      if (row.state !== "queued") return { outcome: "processed", ...found };
      if (change.do === "withdraw")
        await client.query("UPDATE parley.inbox SET state = 'cancelled' WHERE id = $1", [row.id]);
      else {
        const edited =
          own < 0
            ? [{ type: "text", text: change.text }, ...parts]
            : parts.with(own, { type: "text", text: change.text });
        await client.query("UPDATE parley.inbox SET parts = $2 WHERE id = $1", [row.id, JSON.stringify(edited)]);
      }
      return { outcome: "changed", ...found };
    });
  },
} satisfies Partial<Handlers>;

/** The newest message with this id, and whether a turn that read it is running. */
async function lockRow(client: PoolClient, place: readonly string[]): Promise<Row | undefined> {
  const found = "channel = $1 AND account = $2 AND message_id = $3 AND conversation = $4";
  // A claim locks the session while it takes rows, so a changed row is never claimed with its old content.
  await client.query(
    `SELECT FROM parley.sessions WHERE id IN (SELECT session_id FROM parley.inbox WHERE ${found}) ORDER BY id FOR UPDATE`,
    [...place],
  );
  const { rows } = await client.query<Row>(
    `SELECT id, state, parts, sender,
            EXISTS (SELECT FROM parley.turns t WHERE t.id = inbox.turn_id AND t.state = 'running') AS running
     FROM parley.inbox WHERE ${found} ORDER BY received_at DESC LIMIT 1`,
    [...place],
  );
  return rows[0];
}

function textAt(parts: Parts, index: number): string {
  const part = parts[index];
  return part?.type === "text" ? part.text : "";
}
