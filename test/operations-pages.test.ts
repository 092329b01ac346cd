// The pages for operators name only what exists: commands, variables, metrics, scripts, files, secrets and log messages.
import assert from "node:assert/strict";
import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { metricCatalog } from "@parley/chassis";
import { natsConf } from "../infra/nats/conf.ts";

const root = join(import.meta.dirname, "..");
const read = (path: string): string => readFileSync(join(root, path), "utf8");
const paths = (pattern: string): string[] => globSync(pattern, { cwd: root }).map((path) => path.replaceAll("\\", "/"));

const pages = [
  "SECURITY.md",
  ...["deploy", "observability", "troubleshooting", "isolation", "attachments", "configuration", "getting-started"].map(
    (name) => `docs/${name}.md`,
  ),
  ...paths("docs/runbooks/*.md"),
];
/** Blocks of code and code within lines. */
const code = (page: string): string[] =>
  [...read(page).matchAll(/```[a-z]*\n([\s\S]*?)```|`([^`\n]+)`/g)].map(([, block, inline]) => block ?? inline ?? "");
const found = (page: string, pattern: RegExp): string[] =>
  code(page).flatMap((text) => [...text.matchAll(pattern)].map(([whole, group]) => group ?? whole));

/** Everything that is shipped, without pages and tests. */
const sources = [
  ...paths("{packages,services}/*/src/**/*.{ts,tsx}"),
  ...paths("{infra,k8s,charts}/**/*.{ts,mts,mjs,yaml,yml,conf,acl,sql,toml,tpl,cfg}"),
  ...paths("services/store/migrations/*.sql"),
  "Dockerfile",
  "docker-compose.yml",
]
  .filter((path) => !/node_modules|\/test\//.test(path))
  .map(read)
  .concat(natsConf("parley", { passwords: true }))
  .join("\n");

const commands = new Set(
  [...read("docs/reference/cli.md").matchAll(/^## ([a-z][a-z -]*)$/gm)].map(([, name = ""]) => name),
);
const isCommand = (words: string): boolean => {
  const [first = "", second = ""] = words.split(" ");
  return commands.has(first) || commands.has(`${first} ${second}`);
};
const isMetric = (name: string): boolean =>
  name in metricCatalog || name.replace(/_(?:bucket|sum|count)$/, "") in metricCatalog;
/** The sources compose the names of TLS files: `REDIS` and `_CA_FILE`. */
const isTlsFile = (name: string): boolean => {
  const prefix = /^(.*)_(?:CA|CERT|KEY)_FILE$/.exec(name)?.[1];
  return prefix !== undefined && sources.includes(`tlsFilesIn(env, "${prefix}")`);
};
/** Names that people choose, and those of OpenTelemetry's specification, are in no source. */
const isVariable = (name: string): boolean =>
  sources.includes(name) || /^(?:PARLEY__|PARLEY_(?:CHANNEL|AGENT|TOOL|HOOK|MCP)_|OTEL_)/.test(name) || isTlsFile(name);
const { scripts } = JSON.parse(read("package.json")) as { scripts: Record<string, string> };

describe("the pages for operators name only existing commands, variables, metrics, scripts, files and secrets", () => {
  for (const page of pages) {
    test(`in ${page}`, () => {
      const unknown = (pattern: RegExp, exists: (name: string) => boolean) =>
        found(page, pattern).filter((name) => !exists(name));
      assert.deepEqual(
        [
          ...unknown(/(?<![\w./-]|-n |namespace |install )parley ([a-z][a-z-]*(?: [a-z][a-z-]*)?)/g, isCommand),
          ...unknown(/\b(?:PARLEY|NATS|DATABASE|REDIS|OTEL)_[A-Z0-9_]*[A-Z0-9]\b/g, isVariable),
          ...unknown(/\bparley_[a-z_]+\b/g, (name) => isMetric(name) || sources.includes(`"${name}"`)),
          ...unknown(/npm run (?:--silent )?([a-z:]+)/g, (name) => name in scripts),
          ...unknown(
            /(?:^|[\s(])((?:infra|k8s|charts|test|services|packages|docs|presets)\/[\w./-]+\w)/g,
            (path) => existsSync(join(root, path)) || path.startsWith("k8s/overlays/mine"),
          ),
          ...unknown(/^(parley-[a-z-]+)$/g, (name) => sources.includes(name)),
          // The beginning of a log message or reason; the sources compose "account disabled" (test/e2e/disabled-accounts.test.ts).
          ...unknown(
            /^(?!parley |npm |kubectl |docker |helm |git |account disabled)([a-z]+ [a-z]+)(?=$|:| [a-z])/g,
            (words) => page.includes("getting-started") || sources.includes(words),
          ),
          ...unknown(/grep (?:-E )?"([a-z |]+)"/g, (words) => words.split("|").every((each) => sources.includes(each))),
        ],
        [],
      );
    });
  }
});
