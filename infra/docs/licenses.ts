// docs/licenses.md: the licences of the packages that the images contain, from the lock file and the installed packages.
import { globSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseAllDocuments } from "yaml";
import { z } from "zod";

const root = fileURLToPath(new URL("../../", import.meta.url));

/** Licences that allow distribution under Apache-2.0 without conditions on Parley's own source. */
const allowed = new Set([
  "0BSD",
  "Apache-2.0",
  "BlueOak-1.0.0",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "CC0-1.0",
  "ISC",
  "MIT",
  "MIT-0",
  "Unlicense",
]);

const Versions = z.record(z.string(), z.string()).optional();
const LockFile = z.object({
  importers: z.record(
    z.string(),
    z.object({
      dependencies: z.record(z.string(), z.object({ version: z.string() })).optional(),
      optionalDependencies: z.record(z.string(), z.object({ version: z.string() })).optional(),
    }),
  ),
  packages: z.record(z.string(), z.looseObject({ os: z.unknown().optional(), cpu: z.unknown().optional() })),
  snapshots: z.record(z.string(), z.object({ dependencies: Versions, optionalDependencies: Versions })),
});
type LockFile = z.infer<typeof LockFile>;

export interface LicensedPackage {
  name: string;
  version: string;
  /** An SPDX expression; undefined: the package does not state it. */
  license: string | undefined;
}

/**
 * The packages that services, command line and console need to run. Without packages that contain only the binary for one platform:
 * their licence is that of the package that requests them.
 */
export function shippedPackages(): LicensedPackage[] {
  // pnpm's lock file may begin with a document about its own version.
  const documents = parseAllDocuments(readFileSync(`${root}pnpm-lock.yaml`, "utf8"));
  const lock = LockFile.parse(documents.at(-1)?.toJS());
  const importers = Object.entries(lock.importers).filter(
    ([path]) => /^(?:services|packages)\//.test(path) && path !== "packages/testing",
  );
  const direct = importers.flatMap(([, { dependencies, optionalDependencies }]) =>
    Object.entries({ ...dependencies, ...optionalDependencies }).map(([name, { version }]): [string, string] => [
      name,
      version,
    ]),
  );
  const packages = [...closure(lock, direct)].map((key) => key.replace(/\(.*$/, ""));
  return [...new Set(packages)]
    .filter((key) => lock.packages[key]?.os === undefined && lock.packages[key]?.cpu === undefined)
    .toSorted()
    .map((key) => {
      const at = key.lastIndexOf("@");
      const [name, version] = [key.slice(0, at), key.slice(at + 1)];
      return { name, version, license: statedLicense(name, version) };
    });
}

/** The keys of all snapshots that the packages need. */
function closure(lock: LockFile, direct: readonly [string, string][]): Set<string> {
  const found = new Set<string>();
  const waiting = [...direct];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const [name, version] = next;
    // An alias has the name of the real package in its version.
    const key = `${name}@${version}` in lock.snapshots ? `${name}@${version}` : version;
    if (version.startsWith("link:") || found.has(key)) continue;
    found.add(key);
    const { dependencies, optionalDependencies } = lock.snapshots[key] ?? {};
    waiting.push(...Object.entries({ ...dependencies, ...optionalDependencies }));
  }
  return found;
}

function statedLicense(name: string, version: string): string | undefined {
  const [file] = globSync(
    `${root}node_modules/.pnpm/${name.replace("/", "+")}@${version}*/node_modules/${name}/package.json`,
  );
  if (file === undefined) return undefined;
  const { license } = z.object({ license: z.string().optional() }).parse(JSON.parse(readFileSync(file, "utf8")));
  return license;
}

/** Whether an SPDX expression offers a licence of the list: one alternative of `OR`, and all parts of `AND`. */
export function isAllowed(expression: string | undefined): boolean {
  if (expression === undefined) return false;
  const text = expression.replace(/^\((.*)\)$/, "$1");
  if (/[()]/.test(text)) return false;
  return text.split(" OR ").some((choice) => choice.split(" AND ").every((license) => allowed.has(license.trim())));
}

/** The whole page. */
export function licensesDocument(packages: readonly LicensedPackage[]): string {
  const byLicense = Map.groupBy(packages, ({ license = "not stated" }) => license);
  const sections = [...byLicense]
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .map(([license, of]) => {
      const names = [...new Set(of.map(({ name }) => `\`${name}\``))].toSorted();
      return `## ${license}\n\n${names.join(", ")}\n`;
    });
  return `# Licences

Generated from \`pnpm-lock.yaml\` by \`npm run docs\`; do not edit. Parley is licensed under Apache-2.0. The images and the command line contain the packages below, each with its
licence file, and Node.js (MIT). \`npm run sbom\` writes the complete list with versions and hashes as CycloneDX (\`sbom.cdx.json\`). A test refuses other licences.

${sections.join("\n")}`;
}
