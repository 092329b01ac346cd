// Ten thousand idle console connections.
import { errorMessage } from "@parley/contracts";
import type { Cluster } from "@parley/local";
import type { Gateway } from "../client.ts";
import type { Row } from "../row.ts";
import { memory } from "../measure.ts";

export async function sockets(cluster: Cluster, gateway: Gateway): Promise<Row[]> {
  const count = 10_000;
  const url = `${gateway.url.replace("http", "ws")}/api/ws`;
  const open: WebSocket[] = [];
  const connectOne = () =>
    new Promise<void>((resolve, reject) => {
      const socket = new WebSocket(url, [`parley.bearer.${gateway.token}`]);
      socket.addEventListener("open", () => {
        open.push(socket);
        resolve();
      });
      socket.addEventListener("error", () => reject(new Error(`refused after ${open.length} sockets`)));
    });
  try {
    while (open.length < count) await Promise.all(Array.from({ length: 100 }, connectOne));
    const pid = cluster.replicas().find((replica) => replica.service === "channel-gateway")?.process?.pid ?? 0;
    const { rssMib } = memory([pid]);
    return [
      {
        what: "10,000 idle WebSockets on one gateway",
        measured: `${rssMib.toFixed(0)} MiB RSS`,
        target: "≤ 600 MiB",
        isMet: rssMib <= 600,
      },
    ];
  } catch (error) {
    return [
      {
        what: "10,000 idle WebSockets on one gateway",
        measured: errorMessage(error),
        target: "≤ 600 MiB",
        isMet: false,
      },
    ];
  } finally {
    for (const socket of open) socket.close();
  }
}
