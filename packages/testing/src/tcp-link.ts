// A TCP connection to a server that a test can interrupt: a listener on 127.0.0.1 that forwards to another port.
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { freePort } from "@parley/local";
import type { Cleanup } from "./stack.ts";

export interface TcpLink {
  /** The port that forwards to the server. */
  readonly port: number;
  /** Loses everything on the way, as a network that is cut: connections stay open and carry nothing, new ones get no answer. */
  cut(): void;
  /** Ends all connections and refuses new ones, as a host without the server. */
  refuse(): Promise<void>;
  /** Forwards again: connections that were cut continue where they were. */
  restore(): Promise<void>;
}

type State = "open" | "cut" | "refused";

/** Listens on a free port; open from the start. The cleanup closes it. */
export async function startTcpLink(cleanup: Cleanup, targetPort: number): Promise<TcpLink> {
  let state: State = "open";
  const pairs = new Set<readonly [Socket, Socket]>();
  const apply = (pair: readonly [Socket, Socket]): void => {
    for (const socket of pair) {
      if (state === "refused") socket.destroy();
      else if (state === "cut") socket.pause();
      else socket.resume();
    }
  };
  const server = createServer((near) => {
    const far = connect(targetPort, "127.0.0.1");
    const pair = [near, far] as const;
    pairs.add(pair);
    for (const [from, to] of [pair, [far, near] as const]) {
      from.on("data", (chunk: Buffer) => {
        if (!to.write(chunk)) from.pause();
      });
      // A full buffer that drains during a cut must not resume the other side.
      to.on("drain", () => (state === "open" ? from.resume() : undefined));
      from.on("end", () => to.end()).on("error", () => to.destroy());
      from.on("close", () => {
        to.destroy();
        pairs.delete(pair);
      });
    }
    apply(pair);
  });
  // A port that no outgoing connection takes while the listener is closed.
  const port = await freePort();
  const listen = async (): Promise<void> => {
    if (server.listening) return;
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
  };
  const enter = (next: State): void => {
    state = next;
    for (const pair of pairs) apply(pair);
  };
  const refuse = async (): Promise<void> => {
    if (server.listening) server.close();
    enter("refused");
  };
  await listen();
  cleanup.add(refuse);
  return {
    port,
    cut: () => enter("cut"),
    refuse,
    async restore() {
      enter("open");
      await listen();
    },
  };
}
