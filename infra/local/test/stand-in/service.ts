// A stand-in for a service: reports ready over IPC, drains on SIGTERM, exits when the supervisor has ended.
// STAND_IN=config exits with a wrong configuration; STAND_IN=crash exits at once; STAND_IN=deaf is never ready.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const { PARLEY_REPLICA = "", PARLEY_HTTP_PORT, PARLEY_TOKEN_SHA256, STAND_IN } = process.env;

if (STAND_IN === "config") {
  process.stderr.write("stand-in: PARLEY_COLOUR: must be green\n");
  process.exit(78);
}
if (STAND_IN === "crash") {
  process.stderr.write("stand-in: no luck today\n");
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
  if (STAND_IN === "deaf") return;
  const http = PARLEY_HTTP_PORT === undefined ? {} : { httpPort: port };
  process.send?.({ type: "ready", service: PARLEY_REPLICA.replace(/-\d+$/, ""), healthPort: port, ...http });
  process.stdout.write(`${PARLEY_REPLICA} is ready\n`);
});

const end = (): void => {
  process.stdout.write(`${PARLEY_REPLICA} has drained\n`, () => process.exit(0));
};
process.on("SIGTERM", end);
process.on("disconnect", () => process.exit(0));
