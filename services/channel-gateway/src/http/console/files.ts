// Serves the built files of the web console from memory. The page loads nothing from elsewhere and runs no inline script.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { sha256Hex } from "../../channels/digest.ts";
import { HttpError } from "../errors.ts";

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

const policy = [
  "default-src 'self'",
  // Pictures that the person is about to send.
  "img-src 'self' blob:",
  "object-src 'none'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

interface ServedFile {
  body: Buffer;
  /** Compressed by the first request: compressing all files takes longer than the rest of the start. */
  gzipped: () => Promise<Buffer>;
  type: string;
  etag: string;
}

/** Registers `/` and the files that the page loads. They contain no data, so they need no token. */
export function consoleFileRoutes(app: FastifyInstance): void {
  const files = builtFiles();
  const page = files.get("index.html") ?? missingPage();
  const config = { open: true };
  app.get("/", { config }, (request, reply) => send(request, reply, page, "no-cache"));
  app.get<{ Params: { name: string } }>("/assets/:name", { config }, (request, reply) => {
    const file = files.get(`assets/${request.params.name}`);
    if (file === undefined) throw new HttpError(404, "not_found", "no such file: reload the page");
    // The name contains the hash of the content.
    return send(request, reply, file, "public, max-age=31536000, immutable");
  });
}

async function send(request: FastifyRequest, reply: FastifyReply, file: ServedFile, cache: string) {
  reply.headers({
    "cache-control": cache,
    "content-security-policy": policy,
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    etag: file.etag,
    vary: "accept-encoding",
  });
  if (request.headers["if-none-match"] === file.etag) return reply.code(304).send();
  reply.type(file.type);
  if (!/\bgzip\b/.test(request.headers["accept-encoding"] ?? "")) return reply.send(file.body);
  return reply.header("content-encoding", "gzip").send(await file.gzipped());
}

function builtFiles(): Map<string, ServedFile> {
  const folder = fileURLToPath(new URL(".", import.meta.resolve("@parley/console/index.html")));
  const files = new Map<string, ServedFile>();
  if (!existsSync(join(folder, "index.html"))) return files;
  for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    const type = types[extname(name)];
    // The documentation has routes of its own.
    if (type !== undefined && !name.startsWith("docs"))
      files.set(name.replaceAll("\\", "/"), served(readFileSync(join(folder, name)), type));
  }
  return files;
}

function missingPage(): ServedFile {
  const text =
    "The web console is not built. Run `npm run build` in the folder of Parley, and start this gateway again.\n";
  return served(Buffer.from(text), "text/plain; charset=utf-8");
}

function served(body: Buffer, type: string): ServedFile {
  let gzipped: Promise<Buffer> | undefined;
  return {
    body,
    gzipped: () => (gzipped ??= promisify(gzip)(body, { level: 9 })),
    type,
    etag: `"${sha256Hex(body).slice(0, 32)}"`,
  };
}
