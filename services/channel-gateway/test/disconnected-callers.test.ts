// Callers that disconnect while their session is looked up: nothing waits for them afterwards.
import assert from "node:assert/strict";
import { EventEmitter, once } from "node:events";
import type { ServerResponse } from "node:http";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import fastify from "fastify";
import type { WebSocket } from "ws";
import type { Bus } from "@parley/bus";
import { ownerAccess } from "../src/http/api-access.ts";
import type { HttpDeps } from "../src/http/deps.ts";
import { Endpoints } from "../src/http/endpoint.ts";
import { eventRoutes } from "../src/http/events.ts";
import { OpenRequests } from "../src/http/open-requests.ts";
import { WsClient } from "../src/http/ws/client.ts";
import { SessionDirectory } from "../src/live/session-directory.ts";

/** A directory of no sessions, and what each lookup waits for. */
function emptyDirectory(lookUp: () => Promise<unknown>) {
  let lookups = 0;
  const request = async () => {
    lookups += 1;
    await lookUp();
    return { session: null };
  };
  const sessions = new SessionDirectory({ request, subscribe: () => undefined } as unknown as Bus);
  return { sessions, lookups: () => lookups };
}

test("ends an event stream whose caller disconnected before it began", async (t) => {
  // A stream that stays open polls its session and sends comments.
  t.mock.timers.enable({ apis: ["setInterval"] });
  const app = fastify();
  t.after(() => app.close());
  let response: ServerResponse | undefined;
  app.addHook("onRequest", (_request, reply, done) => {
    response = reply.raw;
    done();
  });
  const [caller, ended] = [new AbortController(), Promise.withResolvers<void>()];
  const { sessions, lookups } = emptyDirectory(async () => {
    if (lookups() > 1) return;
    assert.ok(response !== undefined);
    const closed = once(response, "close");
    caller.abort();
    await closed;
    ended.resolve();
  });
  const counted: number[] = [];
  const events = { clients: (_kind: string, by: number) => counted.push(by), slowClient: () => undefined };
  const watchers = new OpenRequests();
  eventRoutes(new Endpoints(app), { sessions, watchers, events } as unknown as HttpDeps);
  const url = await app.listen({ port: 0, host: "127.0.0.1" });
  await assert.rejects(fetch(`${url}/api/events?session=none`, { signal: caller.signal }), { name: "AbortError" });
  await ended.promise;
  await setImmediate();
  assert.deepEqual([counted, watchers.count], [[1, -1], 0]);
  t.mock.timers.tick(60_000);
  assert.equal(lookups(), 1);
});

test("ends a subscription whose WebSocket client disconnected before its session was found", async (t) => {
  t.mock.timers.enable({ apis: ["setInterval"] });
  const methods = { send: () => undefined, close: () => undefined };
  const ws = Object.assign(new EventEmitter(), { OPEN: 1, readyState: 1, bufferedAmount: 0, ...methods });
  const found = Promise.withResolvers<void>();
  const { sessions, lookups } = emptyDirectory(() => found.promise);
  const client = new WsClient(ws as unknown as WebSocket, { sessions } as unknown as HttpDeps, ownerAccess);
  t.after(() => client.leave());
  // The second frame is handled after the disconnect.
  for (const session of ["first", "second"]) ws.emit("message", JSON.stringify({ type: "subscribe", session }), false);
  await setImmediate();
  assert.equal(lookups(), 1);
  ws.readyState = 3;
  ws.emit("close");
  found.resolve();
  await setImmediate();
  t.mock.timers.tick(60_000);
  assert.equal(lookups(), 1);
});
