// Checks what skills require of this machine: programs on the search path.
import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import { delimiter, join } from "node:path";

/** Other names count as missing, so that a name cannot be a path. */
const programName = /^[A-Za-z0-9_][A-Za-z0-9._+-]{0,127}$/;

export async function missingPrograms(names: readonly string[], searchPath: string): Promise<string[]> {
  const folders = searchPath.split(delimiter).filter((folder) => folder.startsWith("/"));
  const found = await Promise.all(names.map((name) => isProgram(name, folders)));
  return names.filter((_, index) => found[index] !== true);
}

async function isProgram(name: string, folders: readonly string[]): Promise<boolean> {
  if (!programName.test(name)) return false;
  for (const folder of folders) {
    const path = join(folder, name);
    const runs = await access(path, constants.X_OK).then(
      async () => (await stat(path)).isFile(),
      () => false,
    );
    if (runs) return true;
  }
  return false;
}
