// Speech to text through a local program. It reads files of untrusted senders, so it gets a folder of its own and no secrets of the service.
import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileName, TranscriptionError, type Transcriber } from "./transcriber.ts";

/** Maximum output of the program: more than an hour of speech. */
const maxOutputBytes = 256 * 1024;
/** How much of its error output is kept for the log. */
const keptErrorChars = 1_000;

/** `command`: the program and its arguments, in which `{file}` is replaced. `PATH` and `LANG` are taken from `environment`. */
export function programTranscriber(
  command: readonly string[],
  timeoutMs: number,
  environment: Readonly<Record<string, string | undefined>>,
): Transcriber {
  return {
    async transcribe({ name, mediaType }, content, signal) {
      const folder = await mkdtemp(join(tmpdir(), "parley-recording-"));
      try {
        // The sender chose the name: only its extension is used.
        const extension = /\.\w{1,5}$/.exec(fileName(name, mediaType))?.[0] ?? "";
        const file = join(folder, `recording${extension}`);
        await writeFile(file, content, { mode: 0o600 });
        const [program = "", ...args] = command.map((word) => word.replaceAll("{file}", file));
        const { PATH = "/usr/local/bin:/usr/bin:/bin", LANG = "C.UTF-8" } = environment;
        return await run({ program, args, folder, env: { PATH, LANG, HOME: folder }, timeoutMs, signal });
      } finally {
        await rm(folder, { recursive: true, force: true });
      }
    },
  };
}

interface Run {
  program: string;
  args: readonly string[];
  folder: string;
  env: Record<string, string>;
  timeoutMs: number;
  signal: AbortSignal;
}

/** Returns the program's output. Ends all of its processes at the limits. Throws TranscriptionError, or the signal's reason. */
async function run({ program, args, folder, env, timeoutMs, signal }: Run): Promise<string> {
  signal.throwIfAborted();
  const limit = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
  // A group of its own, so that what the program starts ends with it.
  const child = spawn(program, args, { cwd: folder, env, detached: true, stdio: ["ignore", "pipe", "pipe"] });
  const end = (): void => {
    if (child.pid === undefined) return;
    try {
      process.kill(-child.pid, "SIGKILL");
    } catch {
      // All processes of the group have ended.
    }
  };
  const chunks: Buffer[] = [];
  let bytes = 0;
  let errors = "";
  child.stdout.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > maxOutputBytes) end();
    else chunks.push(chunk);
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => (errors = (errors + text).slice(-keptErrorChars)));
  limit.addEventListener("abort", end, { once: true });
  try {
    const { promise, resolve, reject } = Promise.withResolvers<number | null>();
    child.once("error", reject);
    child.once("close", resolve);
    const code = await promise.catch((error: unknown) => {
      throw new TranscriptionError("the transcription program could not be started", { cause: error });
    });
    signal.throwIfAborted();
    if (limit.aborted) throw failure("timed out", errors);
    if (bytes > maxOutputBytes) throw failure(`wrote more than ${maxOutputBytes / 1_024} KiB`, errors);
    if (code !== 0) throw failure(code === null ? "was ended by a signal" : `ended with exit code ${code}`, errors);
    return Buffer.concat(chunks).toString("utf8").trim();
  } finally {
    limit.removeEventListener("abort", end);
    end();
  }
}

/** The error output is for the log only: it is not shown to the model. */
function failure(what: string, errors: string): TranscriptionError {
  return new TranscriptionError(`the transcription program ${what}`, { cause: new Error(errors) });
}
