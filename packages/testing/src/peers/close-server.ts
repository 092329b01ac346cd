// Ends the HTTP server of a stand-in, with its open connections.
import { once } from "node:events";
import type { Server } from "node:http";

/** Resolves when the server has closed; at once when it does not listen. */
export async function closeServer(server: Server): Promise<void> {
  if (!server.listening) return;
  server.close();
  server.closeAllConnections();
  await once(server, "close");
}
