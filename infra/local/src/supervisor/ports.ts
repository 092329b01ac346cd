// Chooses the gateways' HTTP ports once: a restarted gateway keeps its port.

import { LocalError } from "../errors.ts";
import { listenerOf } from "../processes.ts";
import { freePort, isFree } from "../servers/ports.ts";

/** One port per gateway: the wanted one and the next free ones after it; 0: any free ports. */
export async function gatewayPorts(wanted: number, count: number): Promise<number[]> {
  const ports: number[] = [];
  for (let port = wanted; ports.length < count; port += 1) {
    if (wanted === 0) {
      const free = await freePort();
      if (!ports.includes(free)) ports.push(free);
    } else if (await isFree(port)) {
      ports.push(port);
    } else if (port === wanted) {
      const holder = listenerOf(port);
      throw new LocalError("port_taken", `Port ${port} is taken${holder === null ? "" : ` by ${holder}`}.`, {
        fix: "Stop that program, or choose another port with PARLEY_HTTP_PORT=<port> (0: any free port).",
      });
    }
  }
  return ports;
}
