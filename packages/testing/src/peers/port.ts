// Whether a server has started to listen.
import { once } from "node:events";
import { connect } from "node:net";

/** Whether a server accepts a connection to this port of 127.0.0.1. */
export async function acceptsConnections(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  try {
    await once(socket, "connect");
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
