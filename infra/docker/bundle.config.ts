// The build of one service's bundle, named by Vite's mode: `services/<mode>/bundle` contains the service with all its libraries in a few
// files. A process of a bundle keeps about 15 MiB less in memory than one of several hundred modules, and starts in half the time.
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const services = fileURLToPath(new URL("../../services/", import.meta.url));

/** The script of each service, and those of its threads: the service looks for them next to itself, by name. */
const scripts: Readonly<Record<string, readonly string[]>> = {
  "agent-core": ["main"],
  "channel-gateway": ["main"],
  store: ["main"],
  "tool-runner": ["main", "text/text-thread", "web/extract-article-worker", "tools/read-pdf-thread"],
};

/** Native code, programs and the console's files are found in node_modules at run time. */
const external = ["koffi", "@vscode/ripgrep", "@parley/console", "pg-native"];
const conditions = ["@parley/source", "node"];

const config = ({ mode: service }: { mode: string }) => {
  const entries = scripts[service];
  if (entries === undefined) throw new Error(`--mode must be one of ${Object.keys(scripts).join(", ")}`);
  const root = join(services, service);
  return {
    root,
    logLevel: "error",
    // Programs such as migrate.ts run when they are the main module. In a bundle, only main.ts is.
    define: { "import.meta.main": "false" },
    build: {
      ssr: true,
      outDir: "bundle",
      emptyOutDir: true,
      target: "node24",
      // Stack traces name functions and readable lines.
      minify: false,
      rolldownOptions: {
        // Importing a contract changes nothing: those that a service does not use are left out.
        treeshake: { moduleSideEffects: [{ test: /\/packages\/contracts\/src\//, sideEffects: false }] },
        input: Object.fromEntries(
          entries.map((path) => [path.split("/").at(-1) ?? path, join(root, "src", `${path}.ts`)]),
        ),
        output: { entryFileNames: "[name].js", chunkFileNames: "[name]-[hash].js", comments: false, keepNames: true },
      },
    },
    ssr: { noExternal: true, external, resolve: { conditions } },
    plugins: [{ name: "parley:ascii", generateBundle: escapeChunks }],
  };
};

type Output = Readonly<Record<string, { type: "asset" } | { type: "chunk"; code: string }>>;

/** Escapes the final code: Rolldown prints a chunk again after `renderChunk`, without escapes. */
function escapeChunks(_: unknown, output: Output): void {
  for (const file of Object.values(output)) if (file.type === "chunk") file.code = escapeNonAscii(file.code);
}

/** V8 stores a whole source in two bytes a character when one of them is not in Latin-1. */
function escapeNonAscii(code: string): string {
  // Without the flag `u`, so that a character beyond the first plane becomes its two surrogates.
  // oxlint-disable-next-line no-control-regex -- the range of ASCII
  return code.replaceAll(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

// oxlint-disable-next-line import/no-default-export -- Vite reads the default export
export default config;
