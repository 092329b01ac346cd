// The Signal fake as a program with the arguments of signal-cli, for tests that start and kill the daemon: it prints received messages
// to its output. At the port in `SIGNAL_CONTROL_PORT`, `POST /say` makes Ann write the text in the body; messages that nobody reads are lost
// when it ends. `POST /crash` ends it like a crash of the machine: what its connections still contain is lost.
import { existsSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { startSignalPeer } from "./index.ts";

const { values } = parseArgs({
  allowPositionals: true,
  options: {
    config: { type: "string", default: "" },
    account: { type: "string", default: "" },
    http: { type: "string", default: "" },
    output: { type: "string", default: "" },
    "receive-mode": { type: "string", default: "" },
    "scrub-log": { type: "boolean" },
  },
});

if (!existsSync(join(values.config, "registered"))) {
  process.stderr.write(`User ${values.account} is not registered.\n`);
  process.exit(1);
}
const port = Number(values.http.split(":").at(-1));
const peer = await startSignalPeer({
  port,
  singleAccount: true,
  onReceived: (line) => process.stdout.write(`${line}\n`),
});
process.stderr.write(`INFO  HttpServerHandler - Started HTTP server on /127.0.0.1:${port}\n`);
createServer((request, response) => {
  if (request.url === "/crash") {
    peer.cutStreams();
    process.kill(process.pid, "SIGKILL");
  }
  let text = "";
  request.on("data", (part: Buffer) => (text += part.toString("utf8")));
  request.on("end", () => {
    peer.say(text);
    response.end(String(process.pid));
  });
}).listen(Number(process.env["SIGNAL_CONTROL_PORT"]), "127.0.0.1");
