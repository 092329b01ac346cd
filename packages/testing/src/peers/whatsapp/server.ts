// The Graph API over HTTP on a loopback port: token, version, endpoints, and injected faults.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { keepAlive } from "../keep-alive.ts";
import { graphError, type GraphResult } from "./errors.ts";
import { downloadOf, mediaUrl, upload } from "./media.ts";
import { isRead, markRead, sendMessage } from "./messages.ts";
import type { WhatsAppCall, WhatsAppEndpoint, WhatsAppFault, WhatsAppState } from "./state.ts";

/** One request, with its body read. */
interface Call {
  endpoint: WhatsAppEndpoint;
  /** The media id or the key of a download. */
  id: string;
  body: unknown;
  form: FormData | null;
}

export function createGraphServer(state: WhatsAppState, token: string): Server {
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const root = `http://${request.headers.host ?? "127.0.0.1"}`;
    const call = await read(request, root, state);
    if (call === null) return answer(response, graphError(100, "Unknown path components"));
    const record: WhatsAppCall = { endpoint: call.endpoint, body: call.body, status: null };
    state.calls.push(record);
    state.changed();
    if (request.headers.authorization !== `Bearer ${token}`) {
      record.status = 401;
      return answer(response, graphError(190));
    }
    const fault = state.takeFault(call.endpoint);
    const early = fault === null ? null : faultBefore(fault, response);
    if (early === "cut") return undefined;
    const result = early ?? (await resultOf(call, root, state));
    if (fault?.kind === "hang_after_commit") return undefined;
    if (fault?.kind === "reset_after_commit") {
      response.socket?.resetAndDestroy();
      return undefined;
    }
    record.status = result.status;
    answer(response, result, fault?.kind === "bad_gateway");
    state.changed();
    return undefined;
  };
  return createServer(keepAlive, (request, response) => {
    serve(request, response).catch(() => answer(response, graphError(100, "Broken request")));
  });
}

async function read(request: IncomingMessage, root: string, state: WhatsAppState): Promise<Call | null> {
  const { pathname } = new URL(request.url ?? "/", root);
  const { method } = request;
  const content = await bytesOf(request);
  const [, key] = /^\/lookaside\/([\w-]+)$/.exec(pathname) ?? [];
  if (key !== undefined && method === "GET") return { endpoint: "download", id: key, body: null, form: null };
  // Without a version the platform uses its oldest one.
  const [, id = "", edge] = /^(?:\/v\d+\.\d)?\/(\d+)(?:\/(messages|media))?$/.exec(pathname) ?? [];
  const isOwn = id === state.number.phoneNumberId;
  if (method === "GET" && edge === undefined && id !== "") {
    return { endpoint: isOwn ? "phone" : "media", id, body: null, form: null };
  }
  if (method !== "POST" || !isOwn || edge === undefined) return null;
  if (edge === "media") return { endpoint: "upload", id, body: null, form: await formOf(request, content) };
  const body: unknown = JSON.parse(content.toString("utf8"));
  return { endpoint: isRead(body) ? "typing" : "messages", id, body, form: null };
}

async function resultOf({ endpoint, id, body, form }: Call, root: string, state: WhatsAppState): Promise<GraphResult> {
  switch (endpoint) {
    case "messages":
      return sendMessage(body, state);
    case "typing":
      return markRead(body, state);
    case "upload":
      return form === null ? graphError(100, "Param file must be a file") : upload(form, state);
    case "media":
      return mediaUrl(id, root, state);
    case "download": {
      const content = downloadOf(id, state);
      return content === null ? { status: 404, body: "" } : { status: 200, body: content };
    }
    default:
      return {
        status: 200,
        body: { id, display_phone_number: state.number.displayPhoneNumber, verified_name: "Stand-in" },
      };
  }
}

function faultBefore(fault: WhatsAppFault, response: ServerResponse): GraphResult | "cut" | null {
  switch (fault.kind) {
    case "error":
      return graphError(fault.code, fault.message, fault.retryAfterSeconds);
    case "server_error":
      return graphError(131000);
    case "bad_gateway":
      return { status: 502, body: "" };
    case "reset_before_commit":
      response.socket?.resetAndDestroy();
      return "cut";
    default:
      return null;
  }
}

function answer(response: ServerResponse, { status, body, headers = {} }: GraphResult, asPage = false): void {
  if (response.headersSent || response.destroyed) return;
  if (asPage) {
    response.writeHead(502, { "content-type": "text/html" }).end("<html><h1>502 Bad Gateway</h1></html>");
  } else if (Buffer.isBuffer(body)) {
    response.writeHead(status, { "content-type": "application/octet-stream", ...headers }).end(body);
  } else {
    response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
  }
}

async function bytesOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

async function formOf(request: IncomingMessage, content: Buffer): Promise<FormData | null> {
  const type = request.headers["content-type"] ?? "";
  if (!type.startsWith("multipart/form-data")) return null;
  const form = await new Response(new Uint8Array(content), { headers: { "content-type": type } }).formData();
  const { searchParams } = new URL(request.url ?? "/", "http://127.0.0.1");
  for (const [name, value] of searchParams) form.set(name, value);
  return form;
}
