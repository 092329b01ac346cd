// The build of one bundle, named by Vite's mode: `services/<mode>/bundle` contains the service with all its libraries in a few files, and
// `packages/cli/bundle` the CLI for tests. A process of a bundle keeps about 15 MiB less in memory than one of several hundred modules, and
// starts in half the time.
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const services = fileURLToPath(new URL("../../services/", import.meta.url));
const cli = fileURLToPath(new URL("../../packages/cli/", import.meta.url));

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

/** The folder and the scripts of the bundle with this name. */
function sourcesOf(name: string): { root: string; input: Record<string, string> } {
  if (name === "cli")
    return { root: cli, input: { main: join(cli, "src/main.ts"), "parley-sdk": join(cli, "bin/parley-sdk.mjs") } };
  const entries = scripts[name];
  if (entries === undefined) throw new Error(`--mode must be cli or one of ${Object.keys(scripts).join(", ")}`);
  const root = join(services, name);
  const input = entries.map((path) => [path.split("/").at(-1) ?? path, join(root, "src", `${path}.ts`)] as const);
  return { root, input: Object.fromEntries(input) };
}

const config = ({ mode: name }: { mode: string }) => {
  const { root, input } = sourcesOf(name);
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
        input,
        output: { entryFileNames: "[name].js", chunkFileNames: "[name]-[hash].js", comments: false, keepNames: true },
      },
    },
    ssr: { noExternal: true, external, resolve: { conditions } },
    plugins: [{ name: "parley:ascii", generateBundle: escapeChunks }, ...(name === "cli" ? [checkout] : [])],
  };
};

/**
 * The CLI starts programs of its checkout and reads its files, relative to its modules: they keep the paths of their sources. The executables
 * skip the bootstrap, which would start the sources.
 */
const checkout = {
  name: "parley:checkout",
  enforce: "pre",
  resolveId: (source: string) => (source === "./parley.mjs" ? join(cli, "src/main.ts") : null),
  transform: (code: string, id: string) =>
    id.includes("/node_modules/") || id.startsWith("\0")
      ? null
      : code.replaceAll(/\bimport\.meta\.url\b/g, () => JSON.stringify(pathToFileURL(id).href)),
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
