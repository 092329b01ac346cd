// Content in a bucket of any server that speaks S3: one object each, its key is the prefix and the object's name. An object is there
// whole or not at all. Nobody else loads the SDK.
import { Readable } from "node:stream";
import {
  DeleteObjectCommand,
  GetObjectCommand,
  PutObjectCommand,
  S3Client,
  S3ServiceException,
} from "@aws-sdk/client-s3";
import { WireError } from "@parley/contracts";
import type { BlobPlace, BucketConfig } from "./place.ts";

/** Below the 15 s after which a caller asks again. */
const writeTimeoutMs = 12_000;
const readTimeoutMs = 4_000;
/** The rest of a batch waits for it; what the server does later hurts nobody. */
const removeTimeoutMs = 1_500;
const connectTimeoutMs = 3_000;
/** Without a byte in either direction. */
const idleTimeoutMs = 8_000;

/**
 * Every failure of the server or of the way to it is UNAVAILABLE and says what the server said: asking again is safe. `onFailure` hears of it too: a
 * bucket that is not there, or a key that may not write, is for the operator.
 */
export function bucketPlace(config: BucketConfig, onFailure: (error: WireError) => void): BlobPlace {
  const client = new S3Client({
    region: config.region,
    forcePathStyle: config.pathStyle,
    ...(config.endpoint === null ? {} : { endpoint: config.endpoint }),
    ...(config.credentials === null ? {} : { credentials: { ...config.credentials } }),
    // The hash that we have says more than a checksum, and older servers know no other.
    requestChecksumCalculation: "WHEN_REQUIRED",
    responseChecksumValidation: "WHEN_REQUIRED",
    requestHandler: { connectionTimeout: connectTimeoutMs, socketTimeout: idleTimeoutMs },
    // Who asked us asks again.
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
        if ((ContentLength ?? 0) > length) throw new Error("it sends more than it was asked for");
        return await Body.transformToByteArray();
      } catch (error) {
        // An object that ends before the range is damaged; the caller sees that it is short.
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
  return new WireError("UNAVAILABLE", `the bucket ${bucket} of the attachments does not do it (${why})`, {
    cause: error,
  });
}

/** What it would print is in the error, or of no use. */
const silent = { debug() {}, info() {}, warn() {}, error() {}, trace() {} };
