// JSON-RPC as a signal-cli daemon answers it: the same errors in the same order, with HTTP status 200. A test compares it with the daemon.
import { accountMethods, RpcError, sharedMethods } from "./methods.ts";
import type { SignalState } from "./state.ts";

interface RpcRequest {
  jsonrpc?: unknown;
  method?: unknown;
  params?: unknown;
  id?: unknown;
}

/** The answer to a request body; null: there is none, because the body contains only notifications. */
export function answerTo(body: string, state: SignalState, isMultiAccount: boolean): unknown {
  let request: unknown;
  try {
    request = body.trim() === "" ? undefined : JSON.parse(body);
  } catch (error) {
    return failed(null, -32_700, error instanceof Error ? error.message : "no JSON");
  }
  if (Array.isArray(request)) {
    if (request.length === 0) return failed(null, -32_600, "invalid request");
    const answers = request.map((each: unknown) => single(each, state, isMultiAccount)).filter((each) => each !== null);
    return answers.length === 0 ? null : answers;
  }
  return single(request, state, isMultiAccount);
}

function single(request: unknown, state: SignalState, isMultiAccount: boolean): unknown {
  if (typeof request !== "object" || request === null) {
    return failed(null, -32_600, `unexpected type: ${request === undefined ? "MISSING" : typeof request}`);
  }
  const { jsonrpc, method, params, id = null } = request as RpcRequest;
  const answer = ((): unknown => {
    if (params !== undefined && (typeof params !== "object" || params === null)) {
      return failed(id, -32_600, "Problem deserializing property 'params'");
    }
    if (jsonrpc !== "2.0") return failed(id, -32_600, "only jsonrpc version 2.0 is supported");
    if (typeof method !== "string") return failed(id, -32_600, "method field must be set");
    try {
      return { jsonrpc: "2.0", result: call(method, { ...params }, state, isMultiAccount), id };
    } catch (error) {
      if (!(error instanceof RpcError)) throw error;
      return failed(id, error.code, error.message, error.data);
    }
  })();
  return id === null && typeof method === "string" ? null : answer;
}

function call(method: string, params: Record<string, unknown>, state: SignalState, isMultiAccount: boolean): unknown {
  if (method === "listAccounts" && !isMultiAccount) throw new RpcError(-32_601, "Method not implemented");
  const shared = sharedMethods[method];
  if (shared !== undefined) return shared(state);
  const ofAccount = accountMethods[method];
  if (ofAccount === undefined) throw new RpcError(-32_601, "Method not implemented");
  const { account, ...rest } = params;
  if (isMultiAccount) {
    if (account === undefined) throw new RpcError(-32_602, "Method requires valid account parameter");
    if (account !== state.number) throw new RpcError(-32_602, "Specified account does not exist");
  }
  state.calls.push({ method, params: rest });
  return ofAccount(state, rest);
}

function failed(id: unknown, code: number, message: string, data: unknown = null): object {
  return { jsonrpc: "2.0", error: { code, message, data }, id };
}
