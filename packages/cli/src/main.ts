// The command `parley`.

import { runCommandLine } from "./commands/index.ts";
import { processIo } from "./io/io.ts";

const io = processIo();
// `parley logs | head` is not a failure: the reader closed the pipe.
io.stdout.on("error", (error: Error & { code?: string }) => process.exit(error.code === "EPIPE" ? 0 : 1));
const code = await runCommandLine(process.argv.slice(2), io);
// Standard output may be a slow pipe: flush it before the process exits.
io.stdout.write("", () => process.exit(code));
