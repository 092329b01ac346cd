// Downloads an attachment. Its address expires and contains a signature, so a handle names the message and a new address is requested each
// time.
import { z } from "zod";
import { download, DownloadFailedError, isHostedBy } from "../download.ts";
import type { ApiOptions, Call } from "./api.ts";
import { Message, Snowflake } from "./schema.ts";

const Handle = z.object({ channel: Snowflake, message: Snowflake, attachment: Snowflake });

export async function fetchFile(
  { call, apiRoot }: ApiOptions & { call: Call },
  handle: string,
  maxBytes: number,
  signal: AbortSignal,
): Promise<Uint8Array | "too_large"> {
  const { channel, message, attachment } = Handle.parse(JSON.parse(handle));
  const answer = await call({ method: "GET", path: `/channels/${channel}/messages/${message}` }, Message, signal);
  if (answer.kind !== "ok") throw new DownloadFailedError(answer.reason);
  const { attachments, message_snapshots: snapshots = [] } = answer.result;
  const all = [...attachments, ...snapshots.flatMap((snapshot) => snapshot.message.attachments)];
  const { url, size } = all.find(({ id }) => id === attachment) ?? {};
  if (url === undefined || !isHostedBy(url, apiRoot, /(?:^|\.)discordapp\.(?:com|net)$/)) {
    throw new DownloadFailedError("the message has no such file");
  }
  return (size ?? 0) > maxBytes ? "too_large" : download({ url, maxBytes, signal });
}
