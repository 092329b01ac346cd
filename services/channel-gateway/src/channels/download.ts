// Downloads a file of a message up to a limit. Addresses may contain secrets, so errors name none.
import { readUpTo } from "./transport.ts";

/** The reason of a failed download. */
export class DownloadFailedError extends Error {
  override readonly name = "DownloadFailedError";
  /** The status of the response, if there was one. */
  readonly status: number | null;

  constructor(reason: string, status: number | null = null) {
    super(reason);
    this.status = status;
  }
}

export interface Download {
  url: string;
  headers?: Readonly<Record<string, string>>;
  maxBytes: number;
  signal: AbortSignal;
}

/** The content at an address, which must not redirect. Rejects with a DownloadFailedError. */
export async function download({ url, headers = {}, maxBytes, signal }: Download): Promise<Uint8Array | "too_large"> {
  try {
    const response = await fetch(url, { headers, redirect: "manual", signal });
    if (response.status === 200) return await readUpTo(response, maxBytes);
    await response.body?.cancel();
    throw new DownloadFailedError(`the platform responded with status ${response.status}`, response.status);
  } catch (error) {
    if (error instanceof DownloadFailedError) throw error;
    throw new DownloadFailedError(signal.aborted ? "the download timed out" : "the connection was lost");
  }
}

/** Whether an address belongs to a platform: to the host of its API, or over HTTPS to one that `hosts` matches. */
export function isHostedBy(address: string, apiRoot: string, hosts: RegExp): boolean {
  const url = URL.parse(address);
  if (url === null) return false;
  return url.origin === new URL(apiRoot).origin || (url.protocol === "https:" && hosts.test(url.hostname));
}
