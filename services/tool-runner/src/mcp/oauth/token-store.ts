// Stores OAuth tokens and flow state, encrypted with the operator's key (AES-256-GCM), in a folder that all replicas share. Content
// from another writer, or under another name, fails authentication.
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes, randomUUID } from "node:crypto";
import { mkdir, readFile, rename, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { errnoOf } from "../../workspace/errors.ts";

const ivBytes = 12;
const tagBytes = 16;

export class TokenStore {
  readonly #folder: string;
  readonly #key: Buffer;

  constructor(folder: string, secret: string) {
    this.#folder = folder;
    this.#key = Buffer.from(hkdfSync("sha256", secret, "parley", "mcp tokens", 32));
  }

  /** The value stored under this name; undefined if there is none, or if this key cannot decrypt it. */
  async get(name: string): Promise<unknown> {
    let sealed: Buffer;
    try {
      sealed = await readFile(this.#path(name));
    } catch (error) {
      if (errnoOf(error) === "ENOENT") return undefined;
      throw error;
    }
    return this.#open(name, sealed);
  }

  async put(name: string, value: unknown): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const part = join(this.#folder, `.${randomUUID()}.part`);
    await writeFile(part, this.#seal(name, value), { mode: 0o600 });
    await rename(part, this.#path(name));
  }

  /** True for the caller that removed it, false if it was already gone. */
  async remove(name: string): Promise<boolean> {
    try {
      await unlink(this.#path(name));
      return true;
    } catch (error) {
      if (errnoOf(error) === "ENOENT") return false;
      throw error;
    }
  }

  #path(name: string): string {
    return join(this.#folder, `${name}.sealed`);
  }

  #seal(name: string, value: unknown): Buffer {
    const iv = randomBytes(ivBytes);
    const cipher = createCipheriv("aes-256-gcm", this.#key, iv).setAAD(Buffer.from(name));
    const data = Buffer.concat([cipher.update(JSON.stringify(value), "utf8"), cipher.final()]);
    return Buffer.concat([iv, cipher.getAuthTag(), data]);
  }

  #open(name: string, sealed: Buffer): unknown {
    if (sealed.length < ivBytes + tagBytes) return undefined;
    try {
      const decipher = createDecipheriv("aes-256-gcm", this.#key, sealed.subarray(0, ivBytes))
        .setAAD(Buffer.from(name))
        .setAuthTag(sealed.subarray(ivBytes, ivBytes + tagBytes));
      const data = Buffer.concat([decipher.update(sealed.subarray(ivBytes + tagBytes)), decipher.final()]);
      return JSON.parse(data.toString("utf8"));
    } catch {
      return undefined;
    }
  }
}
