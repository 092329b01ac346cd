// A Bot API for the benchmark: it accepts everything, and has one file, whose beginning differs.
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** The part of a file that differs between downloads. */
const ownBytes = 8;

/** Returns its address, and closes it with `close`. */
export async function startBotApi(file: Uint8Array): Promise<{ url: string; close: () => void }> {
  let downloads = 0;
  const server = createServer((request, response) => {
    const method = request.url?.split("/").at(-1) ?? "";
    const answer = (result: unknown) => {
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ ok: true, result }));
    };
    request.resume().on("end", () => {
      if (request.url?.startsWith("/file/") === true) {
        // Each download has a content of its own; the store keeps the same content once.
        response.writeHead(200).write(String(downloads++).padStart(ownBytes));
        return void response.end(file.subarray(ownBytes));
      }
      if (method === "getMe") return answer({ id: 1, is_bot: true, first_name: "Bench", username: "bench_bot" });
      if (method === "getFile") return answer({ file_path: "file.bin", file_size: file.length });
      return answer(method === "sendMessage" ? { message_id: 1 } : true);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
