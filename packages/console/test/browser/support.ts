// A real browser for the tests: Debian's Chromium, driven by playwright-core.
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { chromium, type Browser, type Page } from "playwright-core";

export { findChromium } from "@parley/local";

/** Starts the browser. The sandbox of Chromium needs privileges that containers lack; the pages are the tests' own. */
export async function startBrowser(executablePath: string): Promise<Browser> {
  return chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
}

/** The address of a page that signs in with a new one-time code. */
export async function signInLink(url: string, token: string): Promise<string> {
  const headers = { authorization: `Bearer ${token}` };
  const response = await fetch(`${url}/api/console/codes`, { method: "POST", headers });
  return `${url}/#code=${((await response.json()) as { code: string }).code}`;
}

/** Presses `g` and the key of a view, as fast as the page takes them: `g` waits for its key only a second. */
export async function goByKeys(page: Page, key: string): Promise<void> {
  await Promise.all([page.keyboard.press("g"), page.keyboard.press(key)]);
}

export interface Front {
  readonly url: string;
  /** The upstream that new connections go to. */
  current(): number;
  close(): Promise<void>;
}

/** One address in front of several gateways, as a load balancer is: a connection goes to the first gateway that accepts it. */
export async function startFront(urls: readonly string[]): Promise<Front> {
  let current = 0;
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    sockets.add(client);
    client.on("error", () => client.destroy());
    client.on("close", () => sockets.delete(client));
    connectTo(client, 0);
  });
  const connectTo = (client: Socket, attempt: number) => {
    const index = (current + attempt) % urls.length;
    const { hostname, port } = new URL(urls[index] ?? "");
    const upstream = connect(Number(port), hostname);
    let connected = false;
    upstream.once("connect", () => {
      connected = true;
      current = index;
      client.pipe(upstream).pipe(client);
    });
    upstream.on("error", () => {
      if (!connected && attempt + 1 < urls.length) connectTo(client, attempt + 1);
      else client.destroy();
    });
    upstream.on("close", () => connected && client.destroy());
    client.on("close", () => upstream.destroy());
  };
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}`,
    current: () => current,
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}
