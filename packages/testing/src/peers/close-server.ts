// Closes the HTTP server of a fake together with its open connections.
import { once } from "node:events";
import type { Server } from "node:http";

/** Resolves when the server has closed; immediately if it is not listening. */
export async function closeServer(server: Server): Promise<void> {
  if (!server.listening) return;
  server.close();
  server.closeAllConnections();
  await once(server, "close");
}
