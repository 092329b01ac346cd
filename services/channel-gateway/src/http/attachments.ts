// Files over HTTP: kept under the hash of their content, given back by it. What comes back is never run by a browser: it is a
// download, whatever it says it is.
import { keepBlob } from "@parley/bus";
import { AttachmentSchema, attachmentName, Sha256Schema, sizeText, store, WireError } from "@parley/contracts";
import type { FastifyInstance, FastifyReply } from "fastify";
import { Readable } from "node:stream";
import { z } from "zod";
import type { HttpDeps } from "./deps.ts";
import { invalid, HttpError } from "./errors.ts";
import type { Endpoints } from "./endpoint.ts";

const Query = z.object({ name: z.string().max(1_000).optional() });
const Params = z.object({ sha256: Sha256Schema });

export function attachmentRoutes(app: FastifyInstance, endpoints: Endpoints, deps: HttpDeps): void {
  const { max_bytes: maxBytes } = deps.settings.attachments;
  endpoints.document({
    method: "POST",
    url: "/api/attachments",
    summary: "Keep a file, to be named in a message",
    description: `The body is the file as it is; its type is read from its content, whatever Content-Type says. At most ${sizeText(maxBytes)}. The answer's \`sha256\` is the \`id\` in \`attachments\` of POST /api/messages; a file that no message names is forgotten after a day.`,
    query: Query,
    answers: {
      201: { description: "Kept, or there already", schema: AttachmentSchema },
      413: { description: "too_large" },
      415: { description: "type_not_accepted: the settings do not let this type in" },
    },
  });
  void app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser("*", { parseAs: "buffer", bodyLimit: maxBytes }, (_request, body, done) =>
      done(null, body),
    );
    scope.post("/api/attachments", { bodyLimit: maxBytes }, async (request, reply) => {
      const query = Query.safeParse(request.query);
      if (!query.success) throw invalid(query.error, "query");
      const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
      if (body.length === 0) throw new HttpError(400, "invalid_request", "the body is empty; it must be the file");
      const { sha256, mediaType, bytes } = await keep(deps, body);
      reply.code(201);
      return { sha256, mediaType, name: attachmentName(query.data.name, "file"), bytes };
    });
  });

  endpoints.add(
    {
      method: "GET",
      url: "/api/attachments/:sha256",
      summary: "A file by the hash of its content",
      params: Params,
      query: Query,
      answers: { 200: { description: "The content", contentType: "application/octet-stream" } },
    },
    async ({ params, query, reply }) => {
      const { blobs } = await deps.bus.request(store.blobHead, { sha256: [params.sha256] });
      const blob = blobs[0];
      if (blob === undefined) throw new HttpError(404, "not_found", `there is no attachment ${params.sha256}`);
      const content = await begun(chunksOf(deps, blob));
      headers(reply, blob, attachmentName(query.name, "file"));
      // Chunk by chunk, as fast as the other side reads.
      return reply.send(Readable.from(content));
    },
  );
}

async function keep({ bus }: HttpDeps, body: Buffer) {
  try {
    return await keepBlob(bus, body);
  } catch (error) {
    if (WireError.is(error, "TOO_LARGE")) throw new HttpError(413, "too_large", error.message);
    if (WireError.is(error, "INVALID_INPUT")) throw new HttpError(415, "type_not_accepted", error.message);
    throw error;
  }
}

function headers(reply: FastifyReply, blob: { sha256: string; bytes: number; mediaType: string }, name: string): void {
  reply.headers({
    "content-type": blob.mediaType,
    "content-length": blob.bytes,
    "content-disposition": `attachment; filename*=UTF-8''${encodeRfc8187(name)}`,
    "x-content-type-options": "nosniff",
    "content-security-policy": "sandbox; default-src 'none'",
    "cache-control": "private, max-age=31536000, immutable",
    etag: `"${blob.sha256}"`,
  });
}

/** The letters that a header's extended value may hold, the rest percent-encoded. */
function encodeRfc8187(name: string): string {
  return encodeURIComponent(name).replace(/['()*]/g, (letter) => `%${letter.charCodeAt(0).toString(16).toUpperCase()}`);
}

/** The same chunks, once the first is there: content that cannot be had is an answer of its own, not the end of one that promised it. */
async function begun(chunks: AsyncGenerator<Buffer>): Promise<AsyncGenerator<Buffer>> {
  const first = await chunks.next();
  return (async function* () {
    if (first.done === true) return;
    yield first.value;
    yield* chunks;
  })();
}

async function* chunksOf({ bus }: HttpDeps, blob: { sha256: string; bytes: number }): AsyncGenerator<Buffer> {
  const count = Math.ceil(blob.bytes / store.blobChunkBytes);
  for (let n = 0; n < count; n++) {
    const { data } = await bus.request(store.blobGet, { sha256: blob.sha256, n });
    yield Buffer.from(data, "base64");
  }
}
