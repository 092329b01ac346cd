// One GET request to an address that has been checked, bounded in size; and the way through redirects, each checked anew.
// No proxy is used, whatever the environment says: it would decide where the request goes.
import { lookup } from "node:dns/promises";
import http, { type IncomingMessage } from "node:http";
import https from "node:https";
import { pipeline, type Readable } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import { findTarget, RefusedTarget, type Resolver, type Target, type TargetPolicy } from "./target.ts";

export interface WebAnswer {
  /** After redirects. */
  url: string;
  status: number;
  /** The header as it came; "" when there is none. */
  contentType: string;
  body: Buffer;
  /** The body is longer; this is its beginning. */
  cut: boolean;
}

export interface GetOptions {
  policy: TargetPolicy;
  resolve: Resolver;
  /** After decompression. */
  maxBytes: number;
  /** Redirects to another host are not followed: nobody approved a request to it. */
  sameHost: boolean;
  signal: AbortSignal;
}

const maxRedirects = 5;
const redirects = new Set([301, 302, 303, 307, 308]);
const decoders = { gzip: createGunzip, "x-gzip": createGunzip, deflate: createInflate, br: createBrotliDecompress };

/** The machine's own resolver. */
export const systemResolver: Resolver = async (hostname) =>
  (await lookup(hostname, { all: true })).map(({ address, family }) => ({ address, family: family === 6 ? 6 : 4 }));

/** Throws RefusedTarget, the signal's reason, or what the network says. */
export async function getPage(address: string, options: GetOptions): Promise<WebAnswer> {
  let next = address;
  for (let hops = 0; hops <= maxRedirects; hops++) {
    const target = await abortable(findTarget(next, options.policy, options.resolve), options.signal);
    const response = await getOnce(target, options.signal);
    const status = response.statusCode ?? 0;
    const { location } = response.headers;
    if (!redirects.has(status) || location === undefined) {
      const { body, cut } = await readBody(response, options.maxBytes);
      return { url: target.url.href, status, contentType: response.headers["content-type"] ?? "", body, cut };
    }
    response.destroy();
    if (!URL.canParse(location, target.url.href))
      throw new RefusedTarget("It leads on to something that is no address.");
    const following = new URL(location, target.url.href);
    if (options.sameHost && !isSameHost(target.url, following)) {
      throw new RefusedTarget(
        `It redirects to another host, which is not followed in a turn that contains untrusted content. The target is ${following.href.slice(0, 2_000)}; fetch it with a call of its own if you need it.`,
      );
    }
    next = following.href;
  }
  throw new RefusedTarget(`It leads on more than ${maxRedirects} times.`);
}

/** The same scheme, host and port; or the same name, from plain HTTP to HTTPS on their default ports. */
function isSameHost(from: URL, to: URL): boolean {
  if (to.origin === from.origin) return true;
  const upgrades = from.protocol === "http:" && to.protocol === "https:" && from.port === "" && to.port === "";
  return upgrades && to.hostname === from.hostname;
}

function getOnce({ url, address }: Target, signal: AbortSignal): Promise<IncomingMessage> {
  const { request, Agent } = url.protocol === "https:" ? https : http;
  return new Promise((resolve, reject) => {
    const asked = request(
      url.href,
      {
        // An agent of its own: the shared one may have been told to use a proxy.
        agent: new Agent(),
        // Only the checked address is connected to; the name is for the certificate and the Host header.
        lookup: (_name, wanted, found) =>
          wanted.all === true ? found(null, [address]) : found(null, address.address, address.family),
        headers: {
          accept: "text/html,application/xhtml+xml,application/json,text/*;q=0.9,*/*;q=0.5",
          "accept-encoding": "gzip, deflate, br",
          "user-agent": "Mozilla/5.0 (compatible; Parley)",
        },
        signal,
      },
      resolve,
    );
    asked.once("error", reject);
    asked.end();
  });
}

async function readBody(response: IncomingMessage, maxBytes: number): Promise<{ body: Buffer; cut: boolean }> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of decoded(response)) {
      if (!Buffer.isBuffer(chunk)) continue;
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > maxBytes) break;
    }
  } finally {
    response.destroy();
  }
  return { body: Buffer.concat(chunks).subarray(0, maxBytes), cut: bytes > maxBytes };
}

/** Throws RefusedTarget for an encoding that nobody asked for. */
function decoded(response: IncomingMessage): Readable {
  const encoding = (response.headers["content-encoding"] ?? "identity").toLowerCase();
  if (encoding === "identity" || encoding === "") return response;
  const decoder = Object.entries(decoders).find(([name]) => name === encoding)?.[1]();
  if (decoder === undefined)
    throw new RefusedTarget(`It is compressed as ${encoding.slice(0, 40)}, which is not understood.`);
  // Errors reach whoever reads the decoder.
  return pipeline(response, decoder, () => undefined);
}

function abortable<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const abort = () => reject(signal.reason);
  if (signal.aborted) abort();
  signal.addEventListener("abort", abort, { once: true });
  return Promise.race([work, promise]).finally(() => signal.removeEventListener("abort", abort));
}
