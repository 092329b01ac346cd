// A `fetch` for MCP servers over HTTP that limits the size of a response, or of each message of an event stream. It does not
// depend on the content of messages.

/** Maximum size of one message of a server, in bytes; the same as for stdio. */
export const maxAnswerBytes = 10 * 1024 * 1024;

/** `exceeded` is called when a response exceeds the limit and is aborted. */
export function boundedFetch(maxBytes: number, exceeded: () => void): typeof fetch {
  return async (input, init) => {
    const response = await fetch(input, init);
    if (response.body === null) return response;
    const stream = response.headers.get("content-type")?.startsWith("text/event-stream") === true;
    const body = response.body.pipeThrough(bounded(maxBytes, stream, exceeded));
    const { status, statusText, headers } = response;
    const same = new Response(body, { status, statusText, headers });
    // The library resolves relative URLs of redirects and metadata against `url`.
    Object.defineProperty(same, "url", { value: response.url });
    Object.defineProperty(same, "redirected", { value: response.redirected });
    return same;
  };
}

/** Passes bytes through until one message exceeds `maxBytes`. In an event stream an empty line ends a message. */
export function bounded(
  maxBytes: number,
  stream: boolean,
  exceeded: () => void,
): TransformStream<Uint8Array, Uint8Array> {
  let bytes = 0;
  let lineIsEmpty = true;
  let followsCr = false;
  return new TransformStream({
    transform(chunk, controller) {
      if (!stream) bytes += chunk.length;
      else {
        for (const byte of chunk) {
          bytes += 1;
          // The LF of a CRLF ends no line of its own; the two bytes may arrive in different chunks.
          const completesCrlf = followsCr && byte === 10;
          followsCr = byte === 13;
          if (completesCrlf) continue;
          if (byte === 10 || byte === 13) {
            if (lineIsEmpty) bytes = 0;
            lineIsEmpty = true;
          } else lineIsEmpty = false;
          if (bytes > maxBytes) break;
        }
      }
      if (bytes > maxBytes) {
        exceeded();
        controller.error(new Error(`the server sent a response of more than ${maxBytes} bytes`));
        return;
      }
      controller.enqueue(chunk);
    },
  });
}
