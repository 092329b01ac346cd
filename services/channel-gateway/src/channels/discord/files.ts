// Downloads an attachment. Its address expires, so a handle names the message and a new address is requested each time.
import { z } from "zod";
import { readUpTo } from "../transport.ts";
import type { ApiOptions, Call } from "./api.ts";
import { Message, Snowflake } from "./schema.ts";

const Handle = z.object({ channel: Snowflake, message: Snowflake, attachment: Snowflake });

/** The reason of a failed download, without addresses: they contain a signature. */
class DownloadFailed extends Error {
  override readonly name = "DownloadFailed";
}

export type Download = (handle: string, maxBytes: number, signal: AbortSignal) => Promise<Uint8Array | "too_large">;

export function createDownload(call: Call, { apiRoot, fetch }: ApiOptions): Download {
  return async (handle, maxBytes, signal) => {
    const { channel, message, attachment } = Handle.parse(JSON.parse(handle));
    const answer = await call({ method: "GET", path: `/channels/${channel}/messages/${message}` }, Message, signal);
    if (answer.kind !== "ok") throw new DownloadFailed(answer.kind === "limited" ? "rate limit" : answer.reason);
    const { attachments, message_snapshots: snapshots = [] } = answer.result;
    const all = [...attachments, ...snapshots.flatMap((snapshot) => snapshot.message.attachments)];
    const file = all.find(({ id }) => id === attachment);
    if (file === undefined || !isOfDiscord(file.url, apiRoot)) throw new DownloadFailed("the message has no such file");
    if ((file.size ?? 0) > maxBytes) return "too_large";
    let response: Response;
    try {
      response = await fetch()(file.url, { redirect: "error", signal });
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

/** Files are served by Discord's own hosts; with another API root, also by that host. */
function isOfDiscord(address: string, apiRoot: string): boolean {
  const url = URL.parse(address);
  if (url === null) return false;
  return (
    url.origin === new URL(apiRoot).origin ||
    (url.protocol === "https:" && /(?:^|\.)discordapp\.(?:com|net)$/.test(url.hostname))
  );
}
