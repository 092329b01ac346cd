// How `npm start` talks to the agent: one message through the OpenAI-compatible API, or `parley chat` as a child process on this terminal.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { request } from "node:http";
import { fileURLToPath } from "node:url";

import { parseJson } from "@parley/kit";
import { z } from "zod";

import { LocalError } from "../errors.ts";

/** Sends `text` and returns the answer. Has no timeout: turns have their own limits. */
export async function ask(httpUrl: string, token: string, text: string, signal: AbortSignal): Promise<string> {
  const body = JSON.stringify({ model: "parley", messages: [{ role: "user", content: text }] });
  const { status, responseBody } = await post(`${httpUrl}/v1/chat/completions`, token, body, signal);
  const { choices, error } = ChatCompletion.safeParse(parseJson(responseBody)).data ?? {};
  const content = choices?.[0]?.message.content;
  if (status === 200 && content !== undefined) return content;
  const message = error?.message ?? `${httpUrl} returned status ${status}: ${responseBody.slice(0, 200)}`;
  throw new LocalError("answer_failed", message, { fix: fixFor(status, message) });
}

const ChatCompletion = z.object({
  choices: z.array(z.object({ message: z.object({ content: z.string() }) })).optional(),
  error: z.object({ message: z.string() }).optional(),
});

/** What the user can do about the error; undefined when no fix is known. */
function fixFor(status: number, message: string): string | undefined {
  if (/api[ -]?key|authentication|x-api-key/i.test(message))
    return "Check the model's key (ANTHROPIC_API_KEY or OPENAI_API_KEY), or set PARLEY_MODEL=rehearsal.";
  if (status === 401)
    return "The cluster of this data folder uses another token: set PARLEY_TOKEN to the token that it was started with.";
  return undefined;
}

/** Uses `node:http` because `fetch` waits at most five minutes for the headers, and a turn may take longer. */
async function post(
  url: string,
  token: string,
  body: string,
  signal: AbortSignal,
): Promise<{ status: number; responseBody: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; responseBody: string }>();
  const headers = {
    authorization: `Bearer ${token}`,
    "content-type": "application/json",
    "content-length": Buffer.byteLength(body),
  };
  const clientRequest = request(url, { method: "POST", headers, signal }, (response) => {
    let responseBody = "";
    response.setEncoding("utf8").on("data", (chunk: string) => (responseBody += chunk));
    response.once("end", () => resolve({ status: response.statusCode ?? 0, responseBody }));
    response.once("error", reject);
  });
  clientRequest.once("error", (error) => {
    reject(
      signal.aborted
        ? (signal.reason as Error)
        : new LocalError("answer_failed", `${url} cannot be reached: ${error.message}`, { cause: error }),
    );
  });
  clientRequest.end(body);
  return promise;
}

const cliScript = fileURLToPath(new URL("../../../../packages/cli/src/main.ts", import.meta.url));

/** A running chat. It controls the terminal until it ends, so other output must go through `warn`. */
export interface TerminalChat {
  /** Resolves when the chat has ended, by itself or through the signal. `keepsCluster`: the user chose to keep the cluster running. */
  readonly ended: Promise<{ keepsCluster: boolean }>;
  /** Shows a warning in the chat. */
  warn(line: string): void;
}

/** The message that the chat sends when the user chooses to keep the cluster running. */
const KeepClusterMessage = z.object({ keepCluster: z.literal(true) });

/** Starts `parley chat` on this terminal. `home`: the data folder of the cluster. The signal ends the chat. */
export function chat(home: string, signal: AbortSignal): TerminalChat {
  const child = spawn(process.execPath, ["--conditions=@parley/source", cliScript, "chat", "--home", home], {
    stdio: ["inherit", "inherit", "inherit", "ipc"],
  });
  let keepsCluster = false;
  child.on("message", (message) => (keepsCluster ||= KeepClusterMessage.safeParse(message).success));
  // Without a listener, a warning that fails because the chat has just ended would crash this process.
  child.on("error", () => undefined);
  const terminate = (): void => {
    child.kill("SIGTERM");
  };
  signal.addEventListener("abort", terminate, { once: true });
  const ended = once(child, "exit").then(() => {
    signal.removeEventListener("abort", terminate);
    return { keepsCluster };
  });
  return { ended, warn: (line) => void (child.connected && child.send({ warning: line }, () => undefined)) };
}

/** Runs a `parley` command on this terminal until it ends, by itself or through the signal. Returns its exit code; null after a signal. */
export async function runOnTerminal(args: readonly string[], signal: AbortSignal): Promise<number | null> {
  if (signal.aborted) return null;
  const child = spawn(process.execPath, ["--conditions=@parley/source", cliScript, ...args], { stdio: "inherit" });
  const terminate = (): void => {
    child.kill("SIGTERM");
  };
  signal.addEventListener("abort", terminate, { once: true });
  const [code] = (await once(child, "exit")) as [number | null];
  signal.removeEventListener("abort", terminate);
  return code;
}
