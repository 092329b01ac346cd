// The values of channel secrets: environment variables, and files of the same names in one folder, readable by their owner only. A file is
// read when an account starts, and watched while it runs, so a replica sees secrets that another process wrote.
import { createHash, randomUUID } from "node:crypto";
import { accessSync, constants, existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { mkdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { errorMessage } from "@parley/contracts";

/** Nobody but the owner and the group may read a secret; volumes of orchestrators give the group access. */
const forbiddenMode = 0o027;

export class ChannelSecrets {
  readonly #variables: ReadonlyMap<string, string>;
  readonly #folder: string | undefined;
  /** Every value that was read, for the log, which removes them. */
  readonly values: string[];

  constructor(variables: ReadonlyMap<string, string>, folder?: string) {
    this.#variables = variables;
    this.#folder = folder;
    this.values = [...variables.values()];
  }

  /** The value of a variable, or of the file with its name. Rejects with a sentence that names both when there is neither. */
  async read(variable: string): Promise<string> {
    const value = this.#variables.get(variable);
    if (value !== undefined) return value;
    const missing = `the environment variable ${variable} is not set`;
    if (this.#folder === undefined) throw new Error(missing);
    const path = join(this.#folder, variable);
    try {
      const { mode } = await stat(path);
      if ((mode & forbiddenMode) !== 0) throw new Error(`${path} can be read or changed by others: chmod 600 ${path}`);
      const content = (await readFile(path, "utf8")).trim();
      if (content === "") throw new Error(`${path} is empty`);
      this.#remember(content);
      return content;
    } catch (error) {
      const reason = isMissing(error) ? `there is no file ${path}` : `the file cannot be used: ${errorMessage(error)}`;
      throw new Error(`${missing}, and ${reason}`, { cause: error });
    }
  }

  /** All values as they are now, by variable, for webhooks and observers, which do not change while the service runs. Skips unusable files. */
  all(): ReadonlyMap<string, string> {
    const folder = this.#folder;
    const all = new Map(this.#variables);
    if (folder === undefined || !existsSync(folder)) return all;
    for (const name of readdirSync(folder)) {
      if (!/^PARLEY_CHANNEL_[A-Z0-9_]+$/.test(name) || all.has(name)) continue;
      try {
        if ((statSync(join(folder, name)).mode & forbiddenMode) !== 0) continue;
        const content = readFileSync(join(folder, name), "utf8").trim();
        if (content === "") continue;
        this.#remember(content);
        all.set(name, content);
      } catch {
        // The account or webhook that names it reports it.
      }
    }
    return all;
  }

  /** A value that changes when the file of one of the variables changes; undefined: none of them has a file. */
  async versionOf(variables: readonly string[]): Promise<string | undefined> {
    const folder = this.#folder;
    if (folder === undefined) return undefined;
    const files = variables.filter((variable) => !this.isVariable(variable));
    const found = await Promise.all(files.map((name) => fileVersion(join(folder, name)).catch(() => "")));
    return found.every((version) => version === "") ? undefined : found.join(",");
  }

  /** Whether the environment has a variable; it takes precedence over a file. */
  isVariable(variable: string): boolean {
    return this.#variables.has(variable);
  }

  /** Whether `write` is possible. */
  get canWrite(): boolean {
    if (this.#folder === undefined) return false;
    try {
      accessSync(this.#folder, constants.W_OK);
      return true;
    } catch (error) {
      // The first write creates a missing folder. A mounted Kubernetes Secret is read-only.
      return isMissing(error);
    }
  }

  /** Stores a value in the file of a variable. */
  async write(variable: string, value: string): Promise<void> {
    if (this.#folder === undefined) throw new Error("PARLEY_SECRETS_DIR is not set");
    this.#remember(value);
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    // Write, then rename: another replica never reads half of a value.
    const draft = join(this.#folder, `.${variable}.${randomUUID()}`);
    await writeFile(draft, `${value}\n`, { mode: 0o600, flag: "wx" });
    await rename(draft, join(this.#folder, variable));
  }

  /** Deletes the file of a variable, if there is one. */
  async remove(variable: string): Promise<void> {
    if (this.#folder !== undefined) await rm(join(this.#folder, variable), { force: true });
  }

  #remember(value: string): void {
    if (!this.values.includes(value)) this.values.push(value);
  }
}

/** Hash of a file's content and permissions. */
async function fileVersion(path: string): Promise<string> {
  const [{ mode }, content] = await Promise.all([stat(path), readFile(path)]);
  return createHash("sha256").update(`${mode}:`).update(content).digest("base64url");
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}
