// Generates docs/reference/websocket.md: the frames of /api/ws, and the events of a session with their fields.
import { readFileSync } from "node:fs";
import { operations, SessionEventSchema } from "@parley/contracts";
import { z } from "zod";
import { ClientFrame } from "../../services/channel-gateway/src/http/ws/frames.ts";
import { code, table } from "./markdown.ts";

interface Fields {
  properties?: Record<string, { const?: string; type?: string; enum?: string[]; anyOf?: { type?: string }[] }>;
  required?: string[];
  anyOf?: Fields[];
  oneOf?: Fields[];
}

interface Frame {
  readonly type: string;
  /** Without `type`; a question mark marks an optional one. */
  readonly fields: readonly string[];
}

function framesOf(schema: z.ZodType, io: "input" | "output"): Frame[] {
  const { oneOf, anyOf = oneOf ?? [] } = z.toJSONSchema(schema, { io }) as Fields;
  return anyOf.flatMap((each) => (each.oneOf ?? each.anyOf ?? [each]).map(frame));
}

function frame({ properties = {}, required = [] }: Fields): Frame {
  const { type, ...others } = properties;
  const fields = Object.entries(others).map(([name, field]) => {
    const kinds = (field.anyOf ?? [field]).map((each) => each.type ?? "any");
    const kind = field.enum === undefined ? kinds.join(" or ") : field.enum.join(" or ");
    return `${name}${required.includes(name) ? "" : "?"}: ${kind}`;
  });
  return { type: type?.const ?? "", fields };
}

/** Frames that a client sends. */
export const clientFrames = (): Frame[] => framesOf(ClientFrame, "input");
/** Events of a session. */
export const sessionEvents = (): Frame[] => framesOf(SessionEventSchema, "output");

/** The names of the frames to a client that are no events. */
export function serverFrames(): string[] {
  const file = new URL("../../services/channel-gateway/src/http/ws/frames.ts", import.meta.url);
  const [, text = ""] = readFileSync(file, "utf8").split("export type ServerFrame =");
  return [...new Set([...text.matchAll(/\btype: "([a-z_]+)"/g)].map(([, name = ""]) => name))];
}

/** Requests that are no operations. */
const ownRequests: Readonly<Record<string, string>> = {
  answer: "Answer a question of the agent in the session",
  send_user_message: "Send a message to the session, as the owner",
};

/** The control requests, by their subtype, with the operation that they run. */
export function controlRequests(): { subtype: string; summary: string }[] {
  const own = Object.entries(ownRequests).map(([subtype, summary]) => ({ subtype, summary }));
  return [...own, ...operationRequests()];
}

function operationRequests(): { subtype: string; summary: string }[] {
  return Object.values(operations).flatMap((each) => {
    const { ws = [], summary = each.name } = each as {
      ws?: readonly { subtype: string }[];
      summary?: string;
      name: string;
    };
    return ws.map(({ subtype }) => ({ subtype, summary }));
  });
}

const serverFrameTexts: Readonly<Record<string, string>> = {
  subscribed:
    "the subscription holds. `key`: what the client subscribed to, the id or key of a session; `session`: the id of the session that this refers to now, also in events, null until the session exists; `after`: the events after this position follow",
  accepted: "a message was stored; `id` is that of the frame",
  command: "the message was a command, with its result",
  cancelled: "what `cancel` stopped",
  control_response: "the answer to a `control_request`",
  error: "a frame was refused; the connection stays open",
  pong: "the answer to `ping`",
};

/** The whole page. */
export function eventsDocument(): string {
  const rows = (frames: readonly Frame[]) =>
    frames.map(({ type, fields }) => [code(type), fields.length === 0 ? "" : fields.map(code).join(", ")]);
  return `${[
    "# WebSocket frames and events",
    "Generated from `services/channel-gateway/src/http/ws` and `packages/contracts/src/events.ts` by `npm run docs`; a test fails when it is stale.",
    "`GET /api/ws` takes the token as `Authorization: Bearer …`. Frames are JSON texts. A client subscribes to sessions, sends messages, and receives events with the session's id. [Events](../events.md) explains which events are durable, how a client continues after a lost connection, and the formats of other protocols.",
    "## Frames from a client",
    table(["type", "fields"], rows(clientFrames())),
    "## Frames to a client",
    table(
      ["type", "meaning"],
      serverFrames().map((type) => [code(type), serverFrameTexts[type] ?? ""]),
    ),
    "## Control requests",
    "The field `request` of a `control_request` has one of these subtypes. An unknown subtype is answered with the list.",
    table(
      ["subtype", "operation"],
      controlRequests().map(({ subtype, summary }) => [code(subtype), summary]),
    ),
    "## Events of a session",
    "The same events come from `GET /api/events` as server-sent events.",
    table(["type", "fields"], rows(sessionEvents())),
  ].join("\n\n")}\n`;
}
