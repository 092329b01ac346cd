// Files over HTTP, addressed by the hash of their content. Responses are always downloads, so that a browser never executes them,
// regardless of their type.
import { storeBlob } from "@parley/bus";
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
    summary: "Store a file, to be referenced in a message",
    description: `The body is the raw file. Its type is detected from the content; Content-Type is ignored. The limit is ${sizeText(maxBytes)}. Use the \`sha256\` of the response as \`id\` in \`attachments\` of POST /api/messages. A file that no message references is deleted after a day.`,
    query: Query,
    answers: {
      201: { description: "Stored, or already present", schema: AttachmentSchema },
      413: { description: "too_large" },
      415: { description: "type_not_accepted: the settings do not allow this type" },
    },
  });
  void app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser("*", { parseAs: "buffer", bodyLimit: maxBytes }, (_request, body, done) =>
      done(null, body),
    );
    scope.post("/api/attachments", { bodyLimit: maxBytes, config: { scope: "talk" } }, async (request, reply) => {
      const query = Query.safeParse(request.query);
      if (!query.success) throw invalid(query.error, "query");
      const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
      if (body.length === 0)
        throw new HttpError(400, "invalid_request", "the body is empty; send the file as the body");
      const { sha256, mediaType, bytes } = await storeContent(deps, body);
      reply.code(201);
      return { sha256, mediaType, name: attachmentName(query.data.name, "file"), bytes };
    });
  });

  endpoints.add(
    {
      method: "GET",
      url: "/api/attachments/:sha256",
      summary: "Download a file by the hash of its content",
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
      // Streamed chunk by chunk, with backpressure.
      return reply.send(Readable.from(content));
    },
  );
}

/** Stores a file. Throws HttpError 413 or 415. */
export async function storeContent({ bus }: Pick<HttpDeps, "bus">, body: Buffer) {
  try {
    return await storeBlob(bus, body);
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

/** Percent-encodes all characters that RFC 8187 does not allow in an extended header value. */
function encodeRfc8187(name: string): string {
  return encodeURIComponent(name).replace(/['()*]/g, (letter) => `%${letter.charCodeAt(0).toString(16).toUpperCase()}`);
}

/** Waits for the first chunk, so that missing content becomes an error response instead of a truncated body. */
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
