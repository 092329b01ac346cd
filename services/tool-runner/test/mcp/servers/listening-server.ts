// A speech server for both transports: validates requests strictly; the test writes its utterances.
//
//   heard:   JSON lines {type, text, quiet?}, written by the test: one event per line; `quiet`: not announced
//   journal: JSON lines {call, pid, arguments}, written by the server: every accepted call
//
// A session contains the lines written after its start, numbered from 1; only the process that started it knows it.
import { appendFileSync, readFileSync, watch } from "node:fs";
import { McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";

/** How utterances are announced: not at all, by a notification, or by a resource of the session. */
export const announcements = ["none", "notify", "resource"] as const;
export type Announcement = (typeof announcements)[number];

/** The method of the server's notification. */
export const notification = "notifications/stt/updated";

export interface Listening {
  /** Creates a server for a connection; all servers share the sessions. */
  connect(): McpServer;
  stop(): void;
}

export interface ListeningOptions {
  heardFile: string;
  journal: string;
  announcement: Announcement;
  /** Announces a new utterance. */
  announce: (news: { sessionId: string; uri: string }) => void;
}

const Line = z.object({ type: z.string(), text: z.string(), quiet: z.boolean().default(false) });
const devices = [
  { id: "mic-1", name: "Desk microphone" },
  { id: "mic-2", name: "Headset" },
];
const answer = (value: object) => ({ content: [{ type: "text" as const, text: JSON.stringify(value) }] });
const refuse = (text: string) => ({ content: [{ type: "text" as const, text }], isError: true });

export function listening({ heardFile, journal, announcement, announce }: ListeningOptions): Listening {
  const sessions = new Map<string, { status: "active" | "stopped"; from: number }>();
  const took = (call: string, args: object) =>
    appendFileSync(journal, `${JSON.stringify({ call, pid: process.pid, arguments: args })}\n`);
  const heard = () =>
    readFileSync(heardFile, "utf8")
      .split("\n")
      .slice(0, -1)
      .map((line) => Line.parse(JSON.parse(line)));
  const resource = (id: string) => (announcement === "resource" ? { resource_uri: `stt://${id}/events` } : {});

  let known = heard().length;
  const watcher =
    announcement === "none"
      ? undefined
      : watch(heardFile, () => {
          const fresh = heard().slice(known);
          known += fresh.length;
          for (const { quiet } of fresh) {
            for (const [sessionId, { status }] of sessions) {
              if (!quiet && status === "active") announce({ sessionId, uri: `stt://${sessionId}/events` });
            }
          }
        });

  const connect = () => {
    const server = new McpServer({ name: "listening", version: "1.0.0" });
    const Session = z.strictObject({ session_id: z.string() });
    if (announcement === "resource") {
      server.server.registerCapabilities({ resources: { subscribe: true } });
      server.server.setRequestHandler("resources/subscribe", ({ params }) => {
        took("subscribe", params);
        return {};
      });
      server.server.setRequestHandler("resources/unsubscribe", ({ params }) => {
        took("unsubscribe", params);
        return {};
      });
    }
    server.registerTool("stt_list_devices", { inputSchema: z.strictObject({}) }, () => answer({ devices }));
    server.registerTool(
      "stt_start_session",
      {
        inputSchema: z.strictObject({
          source: z.enum(["microphone", "loopback"]),
          mic_device_id: z.enum(["mic-1", "mic-2"]).optional(),
          mic_device_name: z.string().optional(),
          endpointing_ms: z.number().int().optional(),
        }),
      },
      (args) => {
        if (args.mic_device_name !== undefined && !devices.some(({ name }) => name === args.mic_device_name))
          return refuse(`no such device: ${args.mic_device_name}`);
        took("start", args);
        const id = `stt-${process.pid}-${sessions.size + 1}`;
        sessions.set(id, { status: "active", from: heard().length });
        return answer({ session_id: id, status: "active", ...resource(id) });
      },
    );
    server.registerTool(
      "stt_get_updates",
      {
        inputSchema: z.strictObject({
          session_id: z.string(),
          since_seq: z.number().int().nonnegative(),
          limit: z.number().int().min(1).max(500),
        }),
      },
      (args) => {
        const session = sessions.get(args.session_id);
        if (session === undefined) return refuse(`unknown session ${args.session_id}`);
        const { status, from } = session;
        const all = heard()
          .slice(from)
          .map(({ type, text }, index) => ({ seq: index + 1, type, text }));
        const events = all.filter(({ seq }) => seq > args.since_seq).slice(0, args.limit);
        took(events.length > 0 ? "updates" : "nothing", args);
        return answer({
          session_id: args.session_id,
          status,
          next_seq: all.length + 1,
          events,
          ...resource(args.session_id),
        });
      },
    );
    server.registerTool("stt_get_session", { inputSchema: Session }, ({ session_id: id }) => {
      const session = sessions.get(id);
      if (session === undefined) return refuse(`unknown session ${id}`);
      return answer({ session_id: id, status: session.status, error_count: 0 });
    });
    server.registerTool("stt_stop_session", { inputSchema: Session }, (args) => {
      const session = sessions.get(args.session_id);
      if (session === undefined) return refuse(`unknown session ${args.session_id}`);
      took("stop", args);
      session.status = "stopped";
      return answer({ session_id: args.session_id, status: "stopped" });
    });
    return server;
  };
  return { connect, stop: () => watcher?.close() };
}
