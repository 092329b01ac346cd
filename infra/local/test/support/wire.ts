// The part of the Redis and NATS wire formats that the tests need.

import { once } from "node:events";
import { connect } from "node:net";

/** Authenticates, sends commands to Redis and returns the raw replies. */
export async function redis(url: string, ...commands: string[]): Promise<string> {
  const { port, password } = new URL(url);
  return talk(Number(port), [`AUTH ${password}`, ...commands, "QUIT"].map((line) => `${line}\r\n`).join(""));
}

/** Sends lines to NATS as one of its users and returns its output up to the reply to the final PING. */
export async function nats(url: string, ...lines: string[]): Promise<string> {
  const { port, username, password } = new URL(url);
  const login = JSON.stringify({ verbose: false, pedantic: false, user: username, pass: decodeURIComponent(password) });
  return talk(
    Number(port),
    `CONNECT ${login}\r\n${lines.map((line) => `${line}\r\n`).join("")}PING\r\n`,
    /PONG|Authorization Violation/,
  );
}

async function talk(port: number, text: string, last?: RegExp): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  socket.write(text);
  let said = "";
  socket.setEncoding("utf8").on("data", (part: string) => {
    said += part;
    if (last?.test(said) === true) socket.destroy();
  });
  await once(socket, "close");
  return said;
}
