// Files: authenticated download and upload of the media repository.
import type { OutboundFile } from "../channel.ts";
import { readUpTo } from "../transport.ts";
import { path, type Answer, type MatrixApi } from "./api.ts";
import { mediaOf } from "./parse.ts";
import { Uploaded } from "./schema.ts";

/** The reason of a failed download; it names no address. */
class DownloadFailedError extends Error {
  override readonly name = "DownloadFailedError";
}

/** Downloads a file up to a limit. Rejects with a DownloadFailedError. */
export async function downloadMedia(
  api: MatrixApi,
  handle: string,
  maxBytes: number,
  signal: AbortSignal,
): Promise<Uint8Array | "too_large"> {
  const media = mediaOf(handle);
  if (media === null) throw new DownloadFailedError("not a Matrix file");
  const { server, id } = media;
  try {
    let response = await api.get(path`/client/v1/media/download/${server}/${id}`, signal);
    // Servers from before version 1.11 of the specification.
    if (response.status === 404) response = await api.get(path`/media/v3/download/${server}/${id}`, signal);
    if (!response.ok) {
      await response.body?.cancel();
      throw new DownloadFailedError(`the homeserver responded with status ${response.status}`);
    }
    return await readUpTo(response, maxBytes);
  } catch (error) {
    if (error instanceof DownloadFailedError) throw error;
    throw new DownloadFailedError(signal.aborted ? "the download timed out" : "the connection was lost");
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
