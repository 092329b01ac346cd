// Closes the connections of a server that no request uses, so that they do not delay the end of the process.
import type { Server } from "node:http";
import type { Socket } from "node:net";

/** Tracks the connections of `server` from now on. The returned function closes those without a request in progress. */
export function trackIdleConnections(server: Server): () => void {
  const open = new Set<Socket>();
  server.on("connection", (socket) => {
    open.add(socket);
    socket.once("close", () => open.delete(socket));
  });
  return () => {
    server.closeIdleConnections();
    // Node counts a connection as active until its first request: browsers and HTTP clients open some in advance.
    for (const socket of open) if (socket.bytesRead === 0) socket.destroy();
  };
}
