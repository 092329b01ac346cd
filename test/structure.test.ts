// Limits of the code's structure: file sizes, files at the root of a service, cycles between folders and their order, error names.
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { dirname, join, normalize, relative, resolve } from "node:path";
import { describe, test } from "node:test";

const root = resolve(import.meta.dirname, "..");
const services = ["agent-core", "channel-gateway", "store", "tool-runner"] as const;
const sources = globSync(["packages/*/src/**/*.{ts,tsx}", "services/*/src/**/*.ts", "infra/*/src/**/*.ts"], {
  cwd: root,
});

const maxLines = 300;

/** The folders of a service in order: a folder imports only folders before it. Nested folders that are named have their own place. */
const folderOrders: Record<string, string> = {
  "tool-runner":
    "worker workspace search text snapshots documents tool calls network sandbox hooks mcp/interaction mcp/oauth mcp processes web tools docs",
};

const maxRootFiles = 8;

/** The style sheets of the console. */
const maxStyleLines = 700;

describe("structure", () => {
  test(`no style sheet has more than ${maxStyleLines} lines`, () => {
    const long = globSync("packages/*/src/**/*.css", { cwd: root }).filter(
      (path) => readFileSync(join(root, path), "utf8").split("\n").length - 1 > maxStyleLines,
    );
    assert.deepEqual(long, []);
  });

  test(`no source file has more than ${maxLines} lines`, () => {
    const long = sources
      .map((path) => ({ path, lines: readFileSync(join(root, path), "utf8").split("\n").length - 1 }))
      .filter(({ lines }) => lines > maxLines);
    assert.deepEqual(long, []);
  });

  test("no cluster of a test gets the developer's environment", () => {
    const tests = globSync(
      ["{packages,services,infra}/*/test/**/*.ts", "packages/testing/src/**/*.ts", "test/**/*.ts"],
      {
        cwd: root,
      },
    ).filter((path) => !path.includes("node_modules"));
    assert.ok(tests.length > 300);
    const own = tests.filter((path) =>
      /environment: (?:\{\s*\.\.\.)?process\.env\b/.test(readFileSync(join(root, path), "utf8")),
    );
    assert.deepEqual(own, []);
  });

  // The adapters that the interface of the channel host was designed with: what they have in common belongs to the host.
  for (const [channel, most] of Object.entries({ telegram: 700, irc: 950 })) {
    test(`the adapter of ${channel} has at most ${most} lines`, () => {
      const paths = globSync(`services/channel-gateway/src/channels/${channel}/*.ts`, { cwd: root });
      const lines = paths.map((path) => readFileSync(join(root, path), "utf8").split("\n").length - 1);
      assert.ok(lines.length > 5);
      assert.ok(lines.reduce((sum, each) => sum + each, 0) <= most, `${lines.join(" + ")} lines`);
    });
  }

  test("each error class has its own name as the name of its errors", () => {
    const errorClasses = sources.flatMap((path) =>
      readFileSync(join(root, path), "utf8")
        .matchAll(/class (\w+) extends \w*Error \{(?:\s*override readonly name(?:: string)? = "(\w+)";)?/g)
        .map(([, className, name]) => ({ path, className, name }))
        .toArray(),
    );
    assert.ok(errorClasses.length > 30, "the pattern finds the error classes");
    assert.deepEqual(
      errorClasses.filter(({ className, name }) => name !== className),
      [],
    );
  });

  // While a module waits, the registered tests run, and a root hook `after` runs before the rest of them is registered.
  test("no test file with a root hook waits between its tests at the top level", () => {
    const files = globSync(["{packages,services,infra}/*/test/**/*.test.ts", "test/**/*.test.ts"], { cwd: root });
    const waiting = files.filter((path) => {
      const lines = readFileSync(join(root, path), "utf8").split("\n");
      const first = lines.findIndex((line) => /^(test|describe)\(/.test(line));
      const later = lines.slice(first + 1);
      return (
        lines.some((line) => line.startsWith("after(")) &&
        later.some((line) => /^(await |(const|let)\b[^>]*\bawait |(test|describe)\(.*skip: await )/.test(line))
      );
    });
    assert.deepEqual(waiting, []);
  });

  for (const [service, order] of Object.entries(folderOrders)) {
    test(`folders of ${service} import only folders before them`, () => {
      assert.deepEqual(importsAgainstOrder(`services/${service}/src`, order.split(" ")), []);
    });
  }

  for (const service of services) {
    test(`${service} has at most ${maxRootFiles} files at its root`, () => {
      const files = sources.filter((path) => dirname(path) === `services/${service}/src`);
      assert.ok(files.length <= maxRootFiles, files.join("\n"));
    });

    test(`folders of ${service} do not import each other in cycles`, () => {
      assert.deepEqual(foldersInCycles(importsBetweenFolders(`services/${service}/src`)), []);
    });
  }
});

/** Which folders the files of a folder import from. The root itself is omitted: it puts the service together. */
function importsBetweenFolders(base: string): Map<string, Set<string>> {
  const graph = new Map<string, Set<string>>();
  const folderOf = (file: string) => relative(base, dirname(file)).split("/")[0] ?? "";
  for (const path of sources) {
    if (!path.startsWith(`${base}/`)) continue;
    const from = folderOf(path);
    for (const [, specifier = ""] of readFileSync(join(root, path), "utf8").matchAll(/from "(\.[^"]+)"/g)) {
      const to = folderOf(normalize(join(dirname(path), specifier)));
      if (from !== "" && to !== "" && to !== from) graph.set(from, (graph.get(from) ?? new Set()).add(to));
    }
  }
  return graph;
}

/** Imports from a folder to one after it, to an unlisted folder, or to a file at the root other than `events`. */
function importsAgainstOrder(base: string, order: readonly string[]): string[] {
  const placeOf = (file: string) => {
    const folder = relative(base, dirname(file));
    return order.indexOf(order.includes(folder) ? folder : (folder.split("/")[0] ?? ""));
  };
  const broken: string[] = [];
  for (const path of sources) {
    if (!path.startsWith(`${base}/`) || dirname(path) === base) continue;
    for (const [, specifier = ""] of readFileSync(join(root, path), "utf8").matchAll(/from "(\.[^"]+)"/g)) {
      const target = normalize(join(dirname(path), specifier));
      if (target === `${base}/events.ts`) continue;
      if (placeOf(path) === -1 || placeOf(target) === -1 || placeOf(target) > placeOf(path))
        broken.push(`${path} imports ${target}`);
    }
  }
  return broken;
}

/** Folders from which imports lead back to the same folder. */
function foldersInCycles(graph: ReadonlyMap<string, ReadonlySet<string>>): string[] {
  const reachable = (start: string) => {
    const found = new Set<string>();
    const queue = [...(graph.get(start) ?? [])];
    for (let folder = queue.pop(); folder !== undefined; folder = queue.pop()) {
      if (found.has(folder)) continue;
      found.add(folder);
      queue.push(...(graph.get(folder) ?? []));
    }
    return found;
  };
  return [...graph.keys()].filter((folder) => reachable(folder).has(folder)).sort();
}
