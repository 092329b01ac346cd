// A real S3 server in a separate process, and a proxy that simulates faults of networks and servers.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { createServer, request, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { temporaryFolder, type Cleanup } from "@parley/testing";
import type { BucketConfig } from "../../src/blobs/backend.ts";

/** `pass`: the server's reply. `cut`: the connection breaks during a write. `down`: 503. `denied`: 403. */
type FrontMode = "pass" | "cut" | "down" | "denied";

/**
 * Behaviour of removals. `pass`: the server's reply. `held`: delayed until released, regardless of the client's timeout. `cut`: the same,
 * and the client's connection breaks immediately.
 */
type RemovalMode = "pass" | "held" | "cut";

export interface S3Fixture {
  bucket: BucketConfig;
  mode: FrontMode;
  removals: RemovalMode;
  /** Pending removals: each function runs one and resolves when the server has completed it. */
  onTheirWay: (() => Promise<void>)[];
  /** Writes that the server has completed. */
  writes: number;
  /** Runs after a completed write, before its reply. */
  afterWrite: () => Promise<void>;
}

const bucketName = "parley-test";

export async function startS3(cleanup: Cleanup): Promise<S3Fixture> {
  const port = await startServer(cleanup);
  const fixture: S3Fixture = {
    mode: "pass",
    removals: "pass",
    onTheirWay: [],
    writes: 0,
    afterWrite: async () => undefined,
    bucket: {
      bucket: bucketName,
      endpoint: "",
      region: "us-east-1",
      pathStyle: true,
      prefix: "blobs/",
      credentials: { accessKeyId: "S3RVER", secretAccessKey: "S3RVER" },
    },
  };
  const front = createServer((incoming, outgoing) => {
    answer(fixture, port, incoming, outgoing).catch(() => outgoing.destroy());
  });
  fixture.bucket.endpoint = `http://127.0.0.1:${await listen(front)}`;
  cleanup.add(async () => {
    front.closeAllConnections();
    await new Promise((resolve) => front.close(resolve));
  });
  return fixture;
}

async function startServer(cleanup: Cleanup): Promise<number> {
  const folder = join(await temporaryFolder(cleanup), "s3");
  await mkdir(folder);
  const main = fileURLToPath(import.meta.resolve("s3rver/package.json"));
  const program = join(dirname(main), "bin/s3rver.js");
  const args = ["--directory", folder, "--address", "127.0.0.1", "--port", "0", "--configure-bucket", bucketName];
  const child = spawn(process.execPath, ["--no-deprecation", program, ...args], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  const ended = once(child, "exit");
  cleanup.add(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  for await (const line of createInterface({ input: child.stdout })) {
    const port = /listening on \S+:(\d+)/.exec(line)?.[1];
    if (port === undefined) continue;
    child.stdout.resume();
    return Number(port);
  }
  throw new Error("the S3 server did not start");
}

async function answer(
  fixture: S3Fixture,
  port: number,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<void> {
  const { mode } = fixture;
  const writing = incoming.method === "PUT";
  if (mode === "down") return refuse(outgoing, 503, "ServiceUnavailable");
  if (mode === "denied") return refuse(outgoing, 403, "AccessDenied");
  if (writing && mode === "cut") {
    await once(incoming, "data");
    incoming.socket.destroy();
    return;
  }
  if (incoming.method === "DELETE" && fixture.removals !== "pass") {
    fixture.onTheirWay.push(async () => {
      (await passOn(port, incoming)).resume();
    });
    if (fixture.removals === "cut") incoming.socket.destroy();
    return;
  }
  const reply = await passOn(port, incoming);
  if (writing && reply.statusCode === 200) {
    fixture.writes += 1;
    await fixture.afterWrite();
  }
  outgoing.writeHead(reply.statusCode ?? 500, reply.headers);
  reply.pipe(outgoing);
}

async function passOn(port: number, incoming: IncomingMessage): Promise<IncomingMessage> {
  const { method, url: path, headers } = incoming;
  const onward = request({ host: "127.0.0.1", port, method, path, headers });
  if (method === "DELETE") onward.end();
  else incoming.pipe(onward);
  const [reply] = (await once(onward, "response")) as [IncomingMessage];
  return reply;
}

function refuse(outgoing: ServerResponse, status: number, code: string): void {
  outgoing.writeHead(status, { "content-type": "application/xml", connection: "close" });
  outgoing.end(`<?xml version="1.0"?><Error><Code>${code}</Code><Message>${code} by the front</Message></Error>`);
}

async function listen(server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}
