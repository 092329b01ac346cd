// Files in both directions. A download sends the bot's token, so it goes only to Slack's own hosts.
import { z } from "zod";
import type { OutboundFile } from "../channel.ts";
import { download, DownloadFailedError, isHostedBy } from "../download.ts";
import type { Answer } from "../json-api.ts";
import { requestFailure } from "../transport.ts";
import type { ApiOptions, Call } from "./api.ts";
import type { Target } from "./send.ts";

const UploadUrl = z.object({ upload_url: z.url(), file_id: z.string() });

export type UploadFile = (target: Target, file: OutboundFile, signal: AbortSignal) => Promise<Answer<unknown>>;

/** Downloads a file of a message by its private address. */
export async function fetchFile(
  { apiRoot, token }: ApiOptions,
  url: string,
  maxBytes: number,
  signal: AbortSignal,
): Promise<Uint8Array | "too_large"> {
  if (!isHostedBy(url, apiRoot, /(?:^|\.)slack(?:-files)?\.com$/)) {
    throw new DownloadFailedError("the file is not stored by Slack");
  }
  try {
    return await download({ url, headers: { authorization: `Bearer ${token}` }, maxBytes, signal });
  } catch (error) {
    const status = error instanceof DownloadFailedError ? (error.status ?? 0) : 0;
    if (status < 300 || status >= 400) throw error;
    // Slack redirects to its sign-in page.
    throw new DownloadFailedError("Slack refuses the download; the app needs files:read", status);
  }
}

/** Uploads a file and shares it. Only the last of the three steps makes it visible. */
export function createUpload(call: Call): UploadFile {
  return async ({ channel, threadTs }, { name, content }, signal) => {
    const about = { filename: name, length: content.length };
    const place = await call("files.getUploadURLExternal", about, UploadUrl, signal);
    if (place.kind !== "ok") return invisible(place);
    const { upload_url: url, file_id: id } = place.result;
    try {
      const response = await fetch(url, {
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
