// The three HTTP endpoints of a signal-cli daemon, and its event stream. Messages are fetched from Signal's servers only while somebody
// reads the stream, as with `--receive-mode=manual`; what was written to a connection counts as delivered.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { keepAlive } from "../keep-alive.ts";
import { errorFor } from "./methods.ts";
import { answerTo } from "./rpc.ts";
import type { SignalState } from "./state.ts";

export interface ServerOptions {
  /** The daemon was started without an account. */
  isMultiAccount: boolean;
  /** Events have ids, and a reader gets the events behind its `Last-Event-ID`. */
  numbersEvents: boolean;
  keepAliveMs: number;
  /** Receives each event, as the daemon's output does. */
  onReceived: (line: string) => void;
}

export interface DaemonServer {
  server: Server;
  /** Connections that read events. */
  readonly readers: number;
  /** Cuts them. */
  cut(): void;
  /** Cuts them because the daemon ended: nothing is written to them any more. */
  end(): void;
  /** Sends any text in the stream. */
  write(text: string): void;
}

export function createDaemonServer(state: SignalState, options: ServerOptions): DaemonServer {
  const readers = new Set<ServerResponse>();
  const buffer: { id: string; data: string }[] = [];
  const started = Date.now();
  let sequence = 0;

  const deliver = (): void => {
    while (readers.size > 0 && state.waiting.length > 0) {
      const data = JSON.stringify({ envelope: state.waiting.shift(), account: state.number });
      const id = `${started}-${++sequence}`;
      buffer.push({ id, data });
      for (const reader of readers) reader.write(eventText(id, data));
      options.onReceived(data);
    }
  };
  const eventText = (id: string, data: string): string =>
    `${options.numbersEvents ? `id:${id}\n` : ""}event:receive\ndata:${data}\n\n`;
  state.watch(deliver);

  const events = (request: IncomingMessage, url: URL, response: ServerResponse): void => {
    const account = url.searchParams.get("account") ?? "";
    if (options.isMultiAccount && account !== "" && account !== state.number) {
      response.writeHead(400).end();
      return;
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.flushHeaders();
    const last = request.headers["last-event-id"];
    if (options.numbersEvents && last !== undefined) {
      const known = buffer.findIndex(({ id }) => id === last);
      for (const { id, data } of buffer.slice(known + 1)) response.write(eventText(id, data));
    }
    readers.add(response);
    const keepAlive = setInterval(() => response.write(":\n"), options.keepAliveMs);
    response.once("close", () => {
      clearInterval(keepAlive);
      readers.delete(response);
      state.changed();
    });
    state.changed();
  };

  const rpc = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await bodyOf(request);
    if (request.headers["content-type"]?.startsWith("application/json") !== true) {
      response.writeHead(415).end();
      return;
    }
    const fault = state.takeFault(methodIn(body));
    if (fault?.kind === "reset_before_commit") {
      response.socket?.resetAndDestroy();
      return;
    }
    if (fault?.kind === "status") {
      response.writeHead(fault.status).end();
      return;
    }
    const error = fault === null ? null : errorFor(fault);
    const answer = error === null ? answerTo(body, state, options.isMultiAccount) : { jsonrpc: "2.0", error, id: "1" };
    state.changed();
    if (fault?.kind === "hang_after_commit") return;
    if (fault?.kind === "reset_after_commit") {
      response.socket?.resetAndDestroy();
      return;
    }
    if (answer === null) response.writeHead(201).end();
    else response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer));
  };

  const server = createServer(keepAlive, (request, response) => {
    const url = new URL(request.url ?? "/", "http://127.0.0.1");
    const [, name, more] = /^\/api\/v1\/(rpc|events|check)(.*)$/.exec(url.pathname) ?? [];
    if (name === undefined) {
      const page = "<h1>404 Not Found</h1>No context found for request";
      response.writeHead(404, { "content-type": "text/html", connection: "close" }).end(page);
    } else if (more !== "") response.writeHead(404).end();
    else if (request.method !== (name === "rpc" ? "POST" : "GET")) response.writeHead(405).end();
    else if (name === "check") response.writeHead(200).end();
    else if (name === "events") events(request, url, response);
    else void rpc(request, response);
  });
  const cut = (): void => {
    for (const reader of readers) reader.socket?.resetAndDestroy();
  };
  return {
    server,
    get readers() {
      return readers.size;
    },
    cut,
    end: () => {
      cut();
      readers.clear();
    },
    write: (text) => {
      for (const reader of readers) reader.write(text);
    },
  };
}

function methodIn(body: string): string {
  return /"method":"(\w+)"/.exec(body)?.[1] ?? "";
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString("utf8");
}
