// Requests to an MCP server over HTTP whose answers are bounded: a whole answer, or each message of a stream of them. It does not know what
// the messages mean.

/** One message of a server, in bytes: the largest there is, as for a program. */
export const maxAnswerBytes = 10 * 1024 * 1024;

/** `exceeded`: an answer was cut off; its request gets no other. */
export function boundedFetch(maxBytes: number, exceeded: () => void): typeof fetch {
  return async (input, init) => {
    const response = await fetch(input, init);
    if (response.body === null) return response;
    const stream = response.headers.get("content-type")?.startsWith("text/event-stream") === true;
    const body = response.body.pipeThrough(bounded(maxBytes, stream, exceeded));
    const { status, statusText, headers } = response;
    const same = new Response(body, { status, statusText, headers });
    // The library resolves relative addresses of redirects and of metadata by it.
    Object.defineProperty(same, "url", { value: response.url });
    Object.defineProperty(same, "redirected", { value: response.redirected });
    return same;
  };
}

/** Passes bytes on until more than `maxBytes` belong to one message. In a stream a message ends with an empty line. */
export function bounded(
  maxBytes: number,
  stream: boolean,
  exceeded: () => void,
): TransformStream<Uint8Array, Uint8Array> {
  let bytes = 0;
  let lineIsEmpty = true;
  return new TransformStream({
    transform(chunk, controller) {
      if (!stream) bytes += chunk.length;
      else {
        for (const byte of chunk) {
          bytes += 1;
          if (byte === 10 || byte === 13) {
            if (lineIsEmpty && byte === 10) bytes = 0;
            lineIsEmpty = true;
          } else lineIsEmpty = false;
          if (bytes > maxBytes) break;
        }
      }
      if (bytes > maxBytes) {
        exceeded();
        controller.error(new Error(`the server sent an answer of more than ${maxBytes} bytes`));
        return;
      }
      controller.enqueue(chunk);
    },
  });
}
