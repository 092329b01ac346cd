// Which source files a running process executes between two moments, from V8's precise coverage over the inspector protocol.
// Source: https://chromedevtools.github.io/devtools-protocol/tot/Profiler/#method-takePreciseCoverage
import { once } from "node:events";
import { z } from "zod";

const Reply = z.object({ id: z.number(), result: z.unknown().optional(), error: z.unknown().optional() });

const Coverage = z.object({
  result: z.array(
    z.object({
      url: z.string(),
      functions: z.array(z.object({ ranges: z.array(z.object({ startOffset: z.number(), count: z.number() })) })),
    }),
  ),
});

export interface ProcessCoverage {
  /** The URLs of the scripts of which a function was called since the last request. Code of a module outside of functions does not count. */
  take(): Promise<Set<string>>;
  close(): void;
}

/** Starts to count calls in a process. `inspectorUrl`: the `ws://` address that Node prints when it runs with `--inspect`. */
export async function coverProcess(inspectorUrl: string): Promise<ProcessCoverage> {
  const socket = new WebSocket(inspectorUrl);
  await once(socket, "open");
  const waiting = new Map<number, PromiseWithResolvers<unknown>>();
  socket.addEventListener("message", ({ data }) => {
    const reply = Reply.safeParse(JSON.parse(String(data)));
    // Everything without an id is an event.
    if (!reply.success) return;
    const { id, result, error } = reply.data;
    if (error === undefined) waiting.get(id)?.resolve(result);
    else waiting.get(id)?.reject(new Error(`the inspector rejected the request: ${JSON.stringify(error)}`));
    waiting.delete(id);
  });
  let lastId = 0;
  const request = (method: string, params: object = {}) => {
    const reply = Promise.withResolvers<unknown>();
    waiting.set(++lastId, reply);
    socket.send(JSON.stringify({ id: lastId, method, params }));
    return reply.promise;
  };
  await request("Profiler.enable");
  await request("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  return {
    async take() {
      const { result } = Coverage.parse(await request("Profiler.takePreciseCoverage"));
      const called = result.filter(({ functions }) =>
        // The function that begins at offset 0 is the module itself: it runs when the file is loaded.
        functions.some(({ ranges: [whole] }) => whole !== undefined && whole.startOffset > 0 && whole.count > 0),
      );
      return new Set(called.map(({ url }) => url));
    },
    close: () => socket.close(),
  };
}
