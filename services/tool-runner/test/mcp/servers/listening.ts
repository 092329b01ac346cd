// An MCP server that listens, over standard input and output: strict in what it takes, and told by the test what it hears.
//
//   listening.ts <heard> <journal>
//   heard:   JSON lines {type, text}, written by the test: one event each, heard when it is written
//   journal: JSON lines {call, pid, arguments}, written by the server: every call that it took
//
// A session hears what is written after its beginning, numbered from 1; it is known to the process that began it, and to no other.
import { appendFileSync, readFileSync } from "node:fs";
import { McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";

const [heardFile = "", journal = ""] = process.argv.slice(2);
const devices = [
  { id: "mic-1", name: "Desk microphone" },
  { id: "mic-2", name: "Headset" },
];
const sessions = new Map<string, { status: "active" | "stopped"; from: number }>();

const took = (call: string, args: object) =>
  appendFileSync(journal, `${JSON.stringify({ call, pid: process.pid, arguments: args })}\n`);
const answer = (value: object) => ({ content: [{ type: "text" as const, text: JSON.stringify(value) }] });
const refuse = (text: string) => ({ content: [{ type: "text" as const, text }], isError: true });

function heard(): { type: string; text: string }[] {
  const lines = readFileSync(heardFile, "utf8").split("\n").slice(0, -1);
  const Line = z.object({ type: z.string(), text: z.string() });
  return lines.map((line) => Line.parse(JSON.parse(line)));
}

serveStdio(() => {
  const server = new McpServer({ name: "listening", version: "1.0.0" });
  const Session = z.strictObject({ session_id: z.string() });
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
      return answer({ session_id: id, status: "active" });
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
        .map((event, index) => ({ seq: index + 1, ...event }));
      const events = all.filter(({ seq }) => seq > args.since_seq).slice(0, args.limit);
      if (events.length > 0) took("updates", args);
      return answer({ session_id: args.session_id, status, next_seq: all.length + 1, events });
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
});
