// Content in a bucket of an S3-compatible server: one object per content, with prefix and object name as key. Objects become visible
// atomically. Only this file loads the SDK.
import { Readable } from "node:stream";
import {
  DeleteObjectCommand,
  GetObjectCommand,
  PutObjectCommand,
  S3Client,
  S3ServiceException,
} from "@aws-sdk/client-s3";
import { WireError } from "@parley/contracts";
import type { BlobBackend, BucketConfig } from "./backend.ts";

/** Below the 15 s after which a caller retries. */
const writeTimeoutMs = 12_000;
const readTimeoutMs = 4_000;
/** Short because the rest of a batch waits; a late completion on the server does no harm. */
const removeTimeoutMs = 1_500;
const connectTimeoutMs = 3_000;
/** Maximum time without a byte in either direction. */
const idleTimeoutMs = 8_000;

/**
 * Every failure of the server or the connection becomes UNAVAILABLE with the server's message: a retry is safe. It is also passed to
 * `onFailure`, because an operator must fix a missing bucket or a key without write access.
 */
export function s3Backend(config: BucketConfig, onFailure: (error: WireError) => void): BlobBackend {
  const client = new S3Client({
    region: config.region,
    forcePathStyle: config.pathStyle,
    ...(config.endpoint === null ? {} : { endpoint: config.endpoint }),
    ...(config.credentials === null ? {} : { credentials: { ...config.credentials } }),
    // The content hash already verifies integrity, and older servers do not support other checksums.
    requestChecksumCalculation: "WHEN_REQUIRED",
    responseChecksumValidation: "WHEN_REQUIRED",
    requestHandler: { connectionTimeout: connectTimeoutMs, socketTimeout: idleTimeoutMs },
    // The caller of the store retries.
    maxAttempts: 1,
    logger: silent,
  });
  const place = { Bucket: config.bucket };
  const keyOf = (object: string) => `${config.prefix}${object}`;
  const failed = (error: unknown) => {
    const failure = unavailable(config.bucket, error);
    onFailure(failure);
    return failure;
  };

  const get = (object: string, range: string) =>
    client.send(new GetObjectCommand({ ...place, Key: keyOf(object), Range: range }), {
      abortSignal: AbortSignal.timeout(readTimeoutMs),
    });

  return {
    name: "bucket",
    async write(source) {
      const body = Readable.from(source.chunks(), { objectMode: false });
      try {
        await client.send(
          new PutObjectCommand({
            ...place,
            Key: keyOf(source.object),
            Body: body,
            ContentLength: source.bytes,
            ChecksumSHA256: Buffer.from(source.sha256, "hex").toString("base64"),
          }),
          { abortSignal: AbortSignal.timeout(writeTimeoutMs) },
        );
      } catch (error) {
        throw failed(error);
      } finally {
        body.destroy();
      }
    },
    async read(object, offset, length) {
      try {
        const { Body, ContentLength } = await get(object, `bytes=${offset}-${offset + length - 1}`);
        if (Body === undefined) return null;
        if ((ContentLength ?? 0) > length) throw new Error("it sent more than was requested");
        return await Body.transformToByteArray();
      } catch (error) {
        // An object that ends before the range is damaged; the caller detects the missing bytes.
        if (statusOf(error) === 416) return new Uint8Array();
        if (error instanceof S3ServiceException && error.name === "NoSuchKey") return null;
        throw failed(error);
      }
    },
    async remove(object) {
      try {
        await client.send(new DeleteObjectCommand({ ...place, Key: keyOf(object) }), {
          abortSignal: AbortSignal.timeout(removeTimeoutMs),
        });
      } catch (error) {
        throw failed(error);
      }
    },
  };
}

function statusOf(error: unknown): number | undefined {
  return error instanceof S3ServiceException ? error.$metadata.httpStatusCode : undefined;
}

function unavailable(bucket: string, error: unknown): WireError {
  const why = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  return new WireError("UNAVAILABLE", `attachment bucket ${bucket} failed: ${why}`, {
    cause: error,
  });
}

/** The SDK's log adds nothing to the error. */
const silent = { debug() {}, info() {}, warn() {}, error() {}, trace() {} };
