// Files of a message: read from this machine or decoded from a program's input, and stored before the message.

import { readFile } from "node:fs/promises";
import { basename, resolve } from "node:path";

import { errorMessage } from "@parley/contracts";

import type { AttachmentRef } from "../chat/connection.ts";
import type { Gateway } from "../cluster/gateway.ts";
import { CliError, type Io } from "../io/io.ts";

export interface FileContent {
  readonly name: string;
  readonly content: Uint8Array<ArrayBuffer>;
}

/** Throws CliError for a file that cannot be read. */
export async function readFiles(paths: readonly string[], io: Io): Promise<FileContent[]> {
  return Promise.all(
    paths.map(async (path) => {
      try {
        return { name: basename(path), content: new Uint8Array(await readFile(resolve(io.cwd, path))) };
      } catch (error) {
        throw new CliError(`Cannot read the file "${path}": ${errorMessage(error)}`);
      }
    }),
  );
}

/** Stores files at the gateway. Throws CliError with the reason of a refusal, such as a size or a type. */
export async function storeFiles(gateway: Gateway, files: readonly FileContent[]): Promise<AttachmentRef[]> {
  return Promise.all(
    files.map(async ({ name, content }) => {
      const { sha256: id } = await gateway.upload(name, content);
      return { id, name };
    }),
  );
}
