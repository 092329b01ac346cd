// The fake of a signal-cli daemon is held to what the real daemon answers to the same requests.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { LocalError } from "@parley/local";
import { startSignalCli, type SignalCliDaemon } from "../src/peers/signal/real-daemon.ts";
import { startSignalPeer, type SignalPeer } from "../src/peers/signal/index.ts";

interface Answer {
  status: number;
  contentType: string | null;
  body: unknown;
}

const json = { "content-type": "application/json" };
const rpc = (body: unknown, headers: Record<string, string> = json): Question => ({
  path: "/api/v1/rpc",
  init: { method: "POST", headers, body: typeof body === "string" ? body : JSON.stringify(body) },
});
interface Question {
  path: string;
  init?: RequestInit;
}
const call = (method: string, params?: object, id: unknown = 1) => rpc({ jsonrpc: "2.0", id, method, params });

const questions: Record<string, Question> = {
  "a check": { path: "/api/v1/check" },
  "a check with POST": { path: "/api/v1/check", init: { method: "POST" } },
  "a call with GET": { path: "/api/v1/rpc" },
  "an unknown path": { path: "/api/v1/nothing" },
  "a path behind an endpoint": { path: "/api/v1/rpc/more" },
  "a call without a JSON content type": rpc(
    { jsonrpc: "2.0", id: 1, method: "version" },
    { "content-type": "text/plain" },
  ),
  "the version": call("version"),
  "the version with a character set": rpc(
    { jsonrpc: "2.0", id: "x", method: "version" },
    { "content-type": "application/json; charset=utf-8" },
  ),
  "a notification": rpc({ jsonrpc: "2.0", method: "version" }),
  "an unknown method": call("nope"),
  "an unknown method of an account": call("nope", { account: "+4915100000000" }),
  "a method of the socket interface": call("subscribeReceive", { account: "+4915100000000" }),
  "a call without a method": rpc({ jsonrpc: "2.0", id: "x" }),
  "another version of the protocol": rpc({ jsonrpc: "1.0", id: 1, method: "version" }),
  "no version of the protocol": rpc({ id: 1, method: "version" }),
  "text that is not JSON": rpc("{nonsense"),
  "an empty body": rpc(""),
  "an empty batch": rpc([]),
  "a batch": rpc([
    { jsonrpc: "2.0", id: 1, method: "version" },
    { jsonrpc: "2.0", id: 2, method: "nope" },
  ]),
  "parameters that are no object": rpc({ jsonrpc: "2.0", id: 1, method: "version", params: "x" }),
  "a send without an account": call("send", { recipient: ["+4915100000001"], message: "x" }),
  "a send with an unknown account": call("send", { account: "+4915100000000", recipient: ["+1"], message: "x" }),
  "a receive with an unknown account": call("receive", { account: "+4915100000000" }),
  "an attachment of an unknown account": call("getAttachment", { account: "+4915100000000", id: "x" }),
  "a typing message without an account": call("sendTyping", { recipient: ["+4915100000001"] }),
  "a reaction without an account": call("sendReaction", { recipient: ["+4915100000001"], emoji: "x" }),
  "a deletion without an account": call("remoteDelete", { recipient: ["+4915100000001"], targetTimestamp: 1 }),
  "events of an unknown account": { path: "/api/v1/events?account=%2B4915100000000" },
  "events with POST": { path: "/api/v1/events", init: { method: "POST" } },
};

async function ask(url: string, { path, init }: Question): Promise<Answer> {
  const response = await fetch(url + path, init);
  const contentType = response.headers.get("content-type");
  const text = await response.text();
  return {
    status: response.status,
    contentType,
    body: comparable(contentType === json["content-type"] ? JSON.parse(text) : text),
  };
}

/** Without the texts of Java's JSON parser. The daemon answers the calls of a batch in any order. */
function comparable(body: unknown): unknown {
  if (Array.isArray(body)) return body.map(comparable).toSorted(byId);
  if (typeof body !== "object" || body === null || !("error" in body)) return body;
  const error = body.error as { code: number; message: string };
  const isParsers = error.code === -32_700 || error.message.startsWith("Problem deserializing");
  return isParsers ? { ...body, error: { ...error, message: "" } } : body;
}

const byId = (a: unknown, b: unknown): number => idOf(a) - idOf(b);
const idOf = (answer: unknown): number => (answer as { id: number }).id;

/** The status and the first bytes of an event stream. */
async function openEvents(url: string): Promise<{ status: number; contentType: string | null }> {
  const closing = new AbortController();
  const response = await fetch(`${url}/api/v1/events`, { signal: closing.signal });
  closing.abort();
  return { status: response.status, contentType: response.headers.get("content-type") };
}

describe("the Signal fake and signal-cli", () => {
  let real: SignalCliDaemon | null = null;
  let missing = "";
  let peer: SignalPeer;
  before(async () => {
    peer = await startSignalPeer();
    real = await startSignalCli().catch((error: unknown) => {
      if (!(error instanceof LocalError)) throw error;
      missing = error.message;
      return null;
    });
  });
  after(async () => {
    await real?.[Symbol.asyncDispose]();
    await peer.close();
  });

  for (const [name, question] of Object.entries(questions)) {
    test(`answers alike: ${name}`, async (context) => {
      if (real === null) return context.skip(`signal-cli with Java is not available: ${missing}`);
      assert.deepEqual(await ask(peer.url, question), await ask(real.url, question));
    });
  }

  test("answers alike: the event stream of all accounts", async (context) => {
    if (real === null) return context.skip(`signal-cli with Java is not available: ${missing}`);
    assert.deepEqual(await openEvents(peer.url), await openEvents(real.url));
  });
});

describe("the Signal fake", () => {
  const send = async (peer: SignalPeer, params: object) => {
    const { body } = await ask(peer.url, call("send", { account: peer.number, ...params }));
    return body as { result?: { timestamp: number }; error?: { code: number; message: string } };
  };

  test("fetches messages only while somebody reads them", async () => {
    await using peer = await startSignalPeer();
    peer.say("one");
    assert.equal(peer.waiting, 1);
    const closing = new AbortController();
    const response = await fetch(`${peer.url}/api/v1/events`, { signal: closing.signal });
    await peer.until("the delivery", () => (peer.waiting === 0 ? true : null));
    const reader: ReadableStreamDefaultReader<Uint8Array> | undefined = response.body?.getReader();
    const first = await reader?.read();
    assert.match(new TextDecoder().decode(first?.value), /^event:receive\ndata:\{"envelope":.*"one".*\}\n\n$/s);
    closing.abort();
  });

  test("refuses what the daemon or a phone would refuse", async () => {
    await using peer = await startSignalPeer();
    const recipient = [peer.ann.uuid];
    const refused: [object, RegExp][] = [
      [{ message: "x" }, /No recipients given/],
      [{ recipient }, /Sending empty message is not allowed/],
      [{ recipient, message: "x", textStyle: ["bold"] }, /Invalid textStyle syntax/],
      [{ recipient, message: "x", textStyle: ["0:1:LOUD"] }, /Invalid style: LOUD/],
      [{ recipient, message: "x", textStyle: ["0:2:BOLD"] }, /not inside of the text/],
      [{ recipient, message: "😀", textStyle: ["0:1:BOLD"] }, /not inside of the text/],
      [{ recipient, message: "x", quoteTimestamp: 1 }, /Quote author parameter is missing/],
      [{ recipient, attachment: "data:text/plain,x" }, /AttachmentInvalidException/],
      [{ recipient, message: "x", editTimestamp: 1 }, /do not find this message/],
      [{ groupId: "!", message: "x" }, /Invalid group id/],
      [{ groupId: "AAAA", message: "x" }, /Group not found/],
      [{ recipient: ["+15550199999"], message: "x" }, /Failed to send message/],
    ];
    for (const [params, message] of refused) assert.match((await send(peer, params)).error?.message ?? "", message);
    assert.equal(peer.sent.length, 0);
    const { result } = await send(peer, { recipient, message: "a b", textStyle: ["0:1:BOLD"] });
    assert.deepEqual(peer.sent[0]?.styles, [{ style: "BOLD", text: "a" }]);
    assert.equal(peer.sent[0]?.timestamp, result?.timestamp);
  });

  test("accepts ten edits of a message", async () => {
    await using peer = await startSignalPeer();
    const recipient = [peer.ann.uuid];
    const { result } = await send(peer, { recipient, message: "0" });
    for (let edit = 1; edit <= 10; edit++) {
      assert.ok((await send(peer, { recipient, message: `${edit}`, editTimestamp: result?.timestamp })).result);
    }
    assert.match(
      (await send(peer, { recipient, message: "11", editTimestamp: result?.timestamp })).error?.message ?? "",
      /ignore this edit/,
    );
    assert.equal(peer.sent[0]?.text, "10");
  });
});
