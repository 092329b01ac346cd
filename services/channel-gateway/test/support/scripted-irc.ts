// A scripted IRC server, for behaviour that cannot be provoked on a real server.
import { once } from "node:events";
import { createServer, type AddressInfo, type Socket } from "node:net";
import { createInterface } from "node:readline";

export interface ScriptedClient {
  /** All lines from the client. */
  readonly lines: string[];
  say(...lines: string[]): void;
  /** Resolves with the next matching line. */
  hear(pattern: RegExp): Promise<string>;
  cut(): void;
}

export interface ScriptedIrc extends AsyncDisposable {
  readonly port: number;
}

/** Runs `script` for each connection. */
export async function startScriptedIrc(script: (client: ScriptedClient) => Promise<void>): Promise<ScriptedIrc> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    const lines: string[] = [];
    let heard = 0;
    let wake = (): void => {};
    createInterface({ input: socket }).on("line", (line) => {
      lines.push(line);
      wake();
    });
    const client: ScriptedClient = {
      lines,
      say: (...said) => void socket.write(said.map((line) => `${line}\r\n`).join("")),
      async hear(pattern) {
        for (;;) {
          while (heard < lines.length) {
            const line = lines[heard] ?? "";
            heard += 1;
            if (pattern.test(line)) return line;
          }
          const { promise, resolve } = Promise.withResolvers<void>();
          wake = resolve;
          await promise;
        }
      },
      cut: () => socket.resetAndDestroy(),
    };
    void script(client);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

/** Registers a client with the given capabilities. */
export async function letIn(client: ScriptedClient, capabilities: string, nick = "parley"): Promise<void> {
  await client.hear(/^CAP LS/);
  client.say(`:irc.test CAP * LS :${capabilities}`);
  if (capabilities !== "") {
    const asked = await client.hear(/^CAP REQ/);
    client.say(`:irc.test CAP ${nick} ACK ${asked.slice("CAP REQ ".length)}`);
  }
  await client.hear(/^CAP :END/);
  client.say(`:irc.test 001 ${nick} :Welcome`);
  await client.hear(/^PING :parley-ready/);
  client.say(`:irc.test PONG irc.test :parley-ready`);
}
