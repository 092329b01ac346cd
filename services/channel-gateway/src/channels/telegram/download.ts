// Downloads a file of the Bot API: requests its path, then reads its bytes up to a limit. The URL contains the token, so no URL leaves
// this file.
import { z } from "zod";
import { readUpTo } from "../transport.ts";
import type { ApiOptions, Call } from "./api.ts";

const File = z.object({ file_path: z.string().optional(), file_size: z.number().int().nonnegative().optional() });

/** The reason of a failed download, without URLs. */
class DownloadFailed extends Error {
  override readonly name = "DownloadFailed";
}

export type Download = (fileId: string, maxBytes: number, signal: AbortSignal) => Promise<Uint8Array | "too_large">;

export function createDownload(call: Call, { apiRoot, token, fetch }: ApiOptions): Download {
  const root = apiRoot.replace(/\/+$/, "");
  return async (fileId, maxBytes, signal) => {
    const answer = await call("getFile", { file_id: fileId }, File, signal);
    if (answer.kind === "refused") {
      // The platform's own limit, 20 MB for bots.
      if (/file is too big/i.test(answer.description)) return "too_large";
      throw new DownloadFailed(`getFile: ${answer.description}`);
    }
    if (answer.kind !== "ok") throw new DownloadFailed(`getFile: ${answer.reason}`);
    const { file_path: path, file_size: size } = answer.result;
    if (path === undefined || !isRelative(path)) throw new DownloadFailed("the platform returned no valid file path");
    if (size !== undefined && size > maxBytes) return "too_large";
    let response: Response;
    try {
      response = await fetch()(`${root}/file/bot${token}/${path}`, { redirect: "error", signal });
    } catch {
      throw new DownloadFailed(signal.aborted ? "the download timed out" : "the connection was lost");
    }
    if (!response.ok) {
      await response.body?.cancel();
      throw new DownloadFailed(`the platform responded with status ${response.status}`);
    }
    try {
      return await readUpTo(response, maxBytes);
    } catch {
      throw new DownloadFailed(signal.aborted ? "the download timed out" : "the connection was lost");
    }
  };
}

/** Whether a path stays below the bot's own path. */
function isRelative(path: string): boolean {
  return /^[\w./-]+$/.test(path) && !path.startsWith("/") && !path.split("/").includes("..");
}
