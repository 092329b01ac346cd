// The messages that a daemon of the gateway has received, as it writes them to its output: a file per start, a line of JSON per message.
// The daemon confirms a message to Signal before the gateway has stored it; if the gateway is killed in between, the next owner of the
// connection finds it here.
import { createReadStream } from "node:fs";
import { mkdir, open, readdir, rm, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";

export class ReceivedLog {
  readonly #folder: string;
  /** The file of the present daemon. */
  #current: string | null = null;

  constructor(dataDir: string, number: string) {
    this.#folder = join(dataDir, "parley-received", number);
  }

  /** Creates the file of the next daemon. The caller closes it. */
  async open(): Promise<FileHandle> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const [last = "0"] = (await this.#files()).slice(-1);
    this.#current = `${String(Number.parseInt(last, 10) + 1).padStart(10, "0")}.jsonl`;
    return open(join(this.#folder, this.#current), "ax", 0o600);
  }

  /**
   * Calls `handle`, in order, for the lines after the last one for which `isStored` is true; for all lines if there is none. Removes the files of earlier daemons
   * when `handle` has resolved for each line.
   */
  async replay(isStored: (line: string) => boolean, handle: (line: string) => Promise<void>): Promise<void> {
    const files = await this.#files();
    let pending: string[] = [];
    for (const file of files) {
      const lines = createInterface({ input: createReadStream(join(this.#folder, file)), crlfDelay: Infinity });
      for await (const line of lines) {
        if (isStored(line)) pending = [];
        else if (line !== "") pending.push(line);
      }
    }
    for (const line of pending) await handle(line);
    for (const file of files) if (file !== this.#current) await rm(join(this.#folder, file), { force: true });
  }

  /** The names of the files, oldest first. */
  async #files(): Promise<string[]> {
    const names = await readdir(this.#folder).catch(() => []);
    return names.filter((name) => /^\d{10}\.jsonl$/.test(name)).toSorted();
  }
}
