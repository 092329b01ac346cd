// A fake of a service: reports ready over IPC, drains on SIGTERM, exits when the supervisor has ended.
// FAKE_SERVICE=config exits with a wrong configuration; FAKE_SERVICE=crash exits immediately; FAKE_SERVICE=deaf is never ready.

import { spawn } from "node:child_process";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const { PARLEY_REPLICA = "", PARLEY_HTTP_PORT, PARLEY_TOKEN_SHA256, FAKE_SERVICE } = process.env;

if (FAKE_SERVICE === "config") {
  process.stderr.write("fake: PARLEY_COLOUR: must be green\n");
  process.exit(78);
}
if (FAKE_SERVICE === "crash") {
  process.stderr.write("fake: no luck today\n");
  process.exit(1);
}

const server = createServer((incoming, response) => {
  if (incoming.url === "/livez") {
    response.end("ok\n");
    return;
  }
  let body = "";
  incoming.setEncoding("utf8").on("data", (part: string) => (body += part));
  incoming.on("end", () => {
    response.setHeader("content-type", "application/json");
    const { messages } = JSON.parse(body) as { messages: { content: string }[] };
    const content = `${PARLEY_REPLICA} heard ${messages[0]?.content} with ${incoming.headers.authorization} as ${PARLEY_TOKEN_SHA256}`;
    response.end(JSON.stringify({ choices: [{ message: { role: "assistant", content } }] }));
  });
});

server.listen(Number(PARLEY_HTTP_PORT ?? 0), "127.0.0.1", () => {
  const { port } = server.address() as AddressInfo;
  if (FAKE_SERVICE === "deaf") return;
  const http = PARLEY_HTTP_PORT === undefined ? {} : { httpPort: port };
  process.send?.({ type: "ready", service: PARLEY_REPLICA.replace(/-\d+$/, ""), healthPort: port, ...http });
  process.stdout.write(`${PARLEY_REPLICA} is ready\n`);
});

/** Its last line follows its end: a child prints it when the supervisor knows of the end. */
const end = (): void => {
  const command = `while kill -0 ${process.pid} 2>/dev/null; do :; done; echo "${PARLEY_REPLICA} has drained"`;
  spawn("/bin/sh", ["-c", command], { stdio: ["ignore", "inherit", "ignore"] }).once("spawn", () => process.exit(0));
};
process.on("SIGTERM", end);
process.on("disconnect", () => process.exit(0));
