// A temporary folder of one test.

import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface Folder extends Disposable {
  readonly path: string;
}

export function folder(): Folder {
  const path = realpathSync(mkdtempSync(join(tmpdir(), "parley-local-")));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}
