// A speech server over standard input and output, `listening.ts <heard> <journal>`: validates requests strictly; the test writes its
// utterances.
//
//   heard:   JSON lines {type, text}, written by the test: one event per line
//   journal: JSON lines {call, pid, arguments}, written by the server: every accepted call
//
// A session contains the lines written after its start, numbered from 1; only the process that started it knows it.
import { appendFileSync, readFileSync } from "node:fs";
import { McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";

const [heardFile = "", journal = ""] = process.argv.slice(2);

const Line = z.object({ type: z.string(), text: z.string() });
const devices = [
  { id: "mic-1", name: "USB microphone" },
  { id: "mic-2", name: "Headset" },
];
const sessions = new Map<string, { status: "active" | "stopped"; from: number }>();

const answer = (value: object) => ({ content: [{ type: "text" as const, text: JSON.stringify(value) }] });
const refuse = (text: string) => ({ content: [{ type: "text" as const, text }], isError: true });
const took = (call: string, args: object) =>
  appendFileSync(journal, `${JSON.stringify({ call, pid: process.pid, arguments: args })}\n`);
const heard = () =>
  readFileSync(heardFile, "utf8")
    .split("\n")
    .slice(0, -1)
    .map((line) => Line.parse(JSON.parse(line)));

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
        .map(({ type, text }, index) => ({ seq: index + 1, type, text }));
      const events = all.filter(({ seq }) => seq > args.since_seq).slice(0, args.limit);
      took(events.length > 0 ? "updates" : "nothing", args);
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
