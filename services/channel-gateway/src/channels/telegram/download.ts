// Downloads a file of the Bot API: requests its path, then its content.
import { z } from "zod";
import { download, DownloadFailedError } from "../download.ts";
import type { Call } from "./api.ts";

const File = z.object({ file_path: z.string().optional(), file_size: z.number().int().nonnegative().optional() });

/** A path that stays below the bot's own. */
const isBelowRoot = /^(?!\/)(?!.*\.\.)[\w./-]+$/;

/** `root`: the address of the bot's files. */
export async function fetchFile(
  call: Call,
  root: string,
  fileId: string,
  maxBytes: number,
  signal: AbortSignal,
): Promise<Uint8Array | "too_large"> {
  const answer = await call("getFile", { file_id: fileId }, File, signal);
  if (answer.kind !== "ok") {
    // The platform's own limit, 20 MB for bots.
    if (/file is too big/i.test(answer.reason)) return "too_large";
    throw new DownloadFailedError(`getFile: ${answer.reason}`);
  }
  const { file_path: path = "", file_size: size = 0 } = answer.result;
  if (!isBelowRoot.test(path)) throw new DownloadFailedError("the platform returned no valid file path");
  if (size > maxBytes) return "too_large";
  return download({ url: `${root}/${path}`, maxBytes, signal });
}
