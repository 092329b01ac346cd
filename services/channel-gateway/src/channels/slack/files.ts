// Files in both directions. A download sends the bot's token, so it goes only to Slack's own hosts.
import { z } from "zod";
import type { OutboundFile } from "../channel.ts";
import { readUpTo, requestFailure } from "../transport.ts";
import type { Answer, ApiOptions, Call } from "./api.ts";
import type { Target } from "./send.ts";

const UploadUrl = z.object({ upload_url: z.url(), file_id: z.string() });

/** The reason of a failed download, without URLs. */
class DownloadError extends Error {
  override readonly name = "DownloadError";
}

export type FetchFile = (handle: string, maxBytes: number, signal: AbortSignal) => Promise<Uint8Array | "too_large">;
export type UploadFile = (target: Target, file: OutboundFile, signal: AbortSignal) => Promise<Answer<unknown>>;

/** Downloads a file of a message by its private address. */
export function createDownload({ apiRoot, token, fetch }: ApiOptions): FetchFile {
  return async (handle, maxBytes, signal) => {
    if (!isOwnHost(handle, apiRoot)) throw new DownloadError("the file is not stored by Slack");
    let response: Response;
    try {
      response = await fetch()(handle, { headers: { authorization: `Bearer ${token}` }, redirect: "manual", signal });
    } catch {
      throw new DownloadError(signal.aborted ? "the download timed out" : "the connection was lost");
    }
    if (response.status !== 200) {
      await response.body?.cancel();
      // Slack redirects to its sign-in page.
      const isSignIn = response.status >= 300 && response.status < 400;
      throw new DownloadError(
        isSignIn ? "Slack refuses the download; the app needs files:read" : `Slack responded with ${response.status}`,
      );
    }
    try {
      return await readUpTo(response, maxBytes);
    } catch {
      throw new DownloadError(signal.aborted ? "the download timed out" : "the connection was lost");
    }
  };
}

function isOwnHost(address: string, apiRoot: string): boolean {
  const url = URL.parse(address);
  if (url === null) return false;
  if (url.origin === new URL(apiRoot).origin) return true;
  return url.protocol === "https:" && /(?:^|\.)slack(?:-files)?\.com$/.test(url.hostname);
}

/** Uploads a file and shares it. Only the last of the three steps makes it visible. */
export function createUpload(call: Call, fetch: () => typeof globalThis.fetch): UploadFile {
  return async ({ channel, threadTs }, { name, content }, signal) => {
    const place = await call(
      "files.getUploadURLExternal",
      { filename: name, length: content.length },
      UploadUrl,
      signal,
    );
    if (place.kind !== "ok") return invisible(place);
    const { upload_url: url, file_id: id } = place.result;
    try {
      const response = await fetch()(url, {
        method: "POST",
        headers: { "content-type": "application/octet-stream" },
        body: Uint8Array.from(content),
        redirect: "manual",
        signal,
      });
      await response.body?.cancel();
      if (response.status !== 200) return { kind: "unreached", reason: `upload: HTTP ${response.status}` };
    } catch (error) {
      return invisible(requestFailure(error, signal));
    }
    const files = [{ id, title: name }];
    const share = { files, channel_id: channel, thread_ts: threadTs };
    return call("files.completeUploadExternal", share, z.unknown(), signal);
  };
}

/** A step before the last one failed: nobody has seen the file. */
function invisible(answer: Exclude<Answer<unknown>, { kind: "ok" }>): Answer<unknown> {
  return answer.kind === "lost" ? { kind: "unreached", reason: answer.reason } : answer;
}
