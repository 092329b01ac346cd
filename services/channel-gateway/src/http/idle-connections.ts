// Closes the connections of a server that no request uses, so that they do not delay the end of the process.
import type { Server } from "node:http";
import type { Socket } from "node:net";

interface TrackedConnections {
  /** Closes those without a request in progress. */
  closeIdle: () => void;
  /** Closes all of them. */
  closeAll: () => void;
}

/** Tracks the connections of `server` from now on. */
export function trackConnections(server: Server): TrackedConnections {
  const open = new Set<Socket>();
  server.on("connection", (socket) => {
    open.add(socket);
    socket.once("close", () => open.delete(socket));
  });
  return {
    closeIdle: () => {
      server.closeIdleConnections();
      // Node counts a connection as active until its first request: browsers and HTTP clients open some in advance.
      for (const socket of open) if (socket.bytesRead === 0) socket.destroy();
    },
    closeAll: () => {
      for (const socket of open) socket.destroy();
    },
  };
}
