// The source trees of an upgrade, and which one each replica of a cluster runs.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { services, type ServiceName } from "@parley/contracts";
import type { LocalClusterOptions } from "@parley/local";

const repository = fileURLToPath(new URL("../../", import.meta.url));
const launcher = fileURLToPath(new URL("launch.mjs", import.meta.url));

/** A source tree with its dependencies. */
export interface Version {
  /** The abbreviated commit, or "this tree". */
  name: string;
  tree: string;
}

/** This source tree, with uncommitted changes. */
export const thisVersion: Version = { name: "this tree", tree: repository };

/** Unpacks a commit into `.parley/versions` and installs its dependencies. Throws when git does not know the commit. */
export async function olderVersion(ref: string): Promise<Version> {
  const name = git("rev-parse", "--short=12", `${ref}^{commit}`).trim();
  const tree = join(repository, ".parley/versions", name);
  if (!existsSync(tree)) {
    const draft = `${tree}.${process.pid}`;
    mkdirSync(draft, { recursive: true });
    execFileSync("tar", ["--extract", "--directory", draft], { input: archive(name) });
    await rename(draft, tree).catch(async (error: unknown) => {
      await rm(draft, { recursive: true, force: true });
      throw error;
    });
  }
  // Any program of the tree installs the dependencies first.
  execFileSync(process.execPath, [join(tree, "infra/local/bootstrap.mjs"), "--bin", "tsc", "--version"], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  return { name, tree };
}

/** The newest tag before this commit, or the commit before it. */
export function previousRef(): string {
  try {
    return git("describe", "--tags", "--abbrev=0", "HEAD^").trim();
  } catch {
    return "HEAD^";
  }
}

function git(...args: string[]): string {
  return execFileSync("git", args, { cwd: repository, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
}

function archive(commit: string): Buffer {
  return execFileSync("git", ["archive", commit], { cwd: repository, maxBuffer: 1024 * 1024 * 1024 });
}

/** The version of each replica, in a folder of small files. */
export class ReplicaVersions {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** For `up`: replicas start from the tree that they are assigned, and the migration is the one of `first`. */
  startOptions(first: Version): {
    programs: NonNullable<LocalClusterOptions["programs"]>;
    env: Record<string, string>;
  } {
    const entries = Object.fromEntries(services.map((service) => [service, launcher])) as Record<ServiceName, string>;
    return {
      programs: { migrate: migrationOf(first), services: entries },
      env: { PARLEY_CHAOS_TREES: this.#folder },
    };
  }

  /** The version that the replica runs after its next start. */
  async assign(service: ServiceName, replica: number, version: Version): Promise<void> {
    await writeFile(join(this.#folder, `${service}-${replica}`), version.tree);
  }
}

/** The migration program of a version. */
export function migrationOf(version: Version): string {
  return join(version.tree, "services/store/src/migrate.ts");
}
