// The speech server over standard input and output: `listening.ts <heard> <journal> [none|notify|resource]`.
import type { McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";
import { announcements, listening, notification } from "./listening-server.ts";

const [heardFile = "", journal = "", named] = process.argv.slice(2);
const announcement = z.enum(announcements).default("none").parse(named);

let connected: McpServer | undefined;
const ears = listening({
  heardFile,
  journal,
  announcement,
  announce({ sessionId, uri }) {
    if (announcement === "resource") void connected?.server.sendResourceUpdated({ uri });
    else void connected?.server.notification({ method: notification, params: { session_id: sessionId } });
  },
});
serveStdio(() => {
  connected = ears.connect();
  return connected;
});
process.stdin.once("end", () => ears.stop());
