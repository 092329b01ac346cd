// Files: authenticated download and upload of the media repository.
import type { OutboundFile } from "../channel.ts";
import { download, DownloadFailedError } from "../download.ts";
import type { Answer } from "../json-api.ts";
import { path, type MatrixApi } from "./api.ts";
import { mediaOf } from "./parse.ts";
import { Uploaded } from "./schema.ts";

/** Downloads a file up to a limit. Rejects with a DownloadFailedError. */
export async function downloadMedia(
  { media }: MatrixApi,
  handle: string,
  maxBytes: number,
  signal: AbortSignal,
): Promise<Uint8Array | "too_large"> {
  const found = mediaOf(handle);
  if (found === null) throw new DownloadFailedError("not a Matrix file");
  const { root, headers } = media;
  const from = (of: string) => download({ url: `${root}${of}`, headers, maxBytes, signal });
  try {
    return await from(path`/client/v1/media/download/${found.server}/${found.id}`);
  } catch (error) {
    if (!(error instanceof DownloadFailedError) || error.status !== 404) throw error;
    // Servers from before version 1.11 of the specification.
    return from(path`/media/v3/download/${found.server}/${found.id}`);
  }
}

/** Uploads a file. A repeated upload leaves a file that no message refers to. */
export function uploadMedia(
  api: MatrixApi,
  { name, mediaType, content }: OutboundFile,
  signal: AbortSignal,
): Promise<Answer<{ content_uri: string }>> {
  return api({
    method: "POST",
    path: "/media/v3/upload",
    query: { filename: name },
    file: { mediaType, content },
    result: Uploaded,
    signal,
  });
}
