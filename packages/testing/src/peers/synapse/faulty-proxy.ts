// A proxy in front of a homeserver that fails on order: before a request arrives, or after it was executed.
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

interface RefusedRequest {
  status: number;
  body: object;
  headers?: Record<string, string>;
}

export interface FaultyProxy extends AsyncDisposable {
  readonly url: string;
  /** Requests so far, as method and path with its query. */
  readonly requests: readonly string[];
  /**
   * What happens to the next request that matches: `cut`, the connection ends before the server gets the request; `lost`, the server
   * executes the request and the connection ends without a response; an answer with a status, which the server does not see.
   */
  failNext(matching: RegExp, fault: "cut" | "lost" | RefusedRequest): void;
}

export async function startFaultyProxy(target: string): Promise<FaultyProxy> {
  const requests: string[] = [];
  const faults: { matching: RegExp; fault: Parameters<FaultyProxy["failNext"]>[1] }[] = [];
  const server = createServer((request, response) => {
    const line = `${request.method ?? ""} ${request.url ?? ""}`;
    requests.push(line);
    const index = faults.findIndex(({ matching }) => matching.test(line));
    const fault = index === -1 ? undefined : faults.splice(index, 1)[0]?.fault;
    if (fault === "cut") {
      request.socket.destroy();
      return;
    }
    if (typeof fault === "object") {
      const headers = { "content-type": "application/json", ...fault.headers };
      response.writeHead(fault.status, headers).end(JSON.stringify(fault.body));
      return;
    }
    const disconnected = new AbortController();
    response.once("close", () => disconnected.abort());
    void forward(target, request, response, fault === "lost", disconnected.signal);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    failNext: (matching, fault) => void faults.push({ matching, fault }),
    [Symbol.asyncDispose]: async () => {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

/** Passes a request on; the connection ends without a response when it is to be lost, or when the server gives none. */
async function forward(
  target: string,
  request: IncomingMessage,
  response: ServerResponse,
  isLost: boolean,
  signal: AbortSignal,
): Promise<void> {
  const { method = "GET", url = "/", headers } = request;
  const { authorization = "", "content-type": type = "application/json" } = headers;
  try {
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const body = method === "GET" ? {} : { body: Buffer.concat(chunks) };
    const answer = await fetch(`${target}${url}`, {
      method,
      headers: { authorization, "content-type": type },
      ...body,
      signal,
    });
    const content = Buffer.from(await answer.arrayBuffer());
    if (isLost) request.socket.destroy();
    else response.writeHead(answer.status, { "content-type": answer.headers.get("content-type") ?? "" }).end(content);
  } catch {
    request.socket.destroy();
  }
}
