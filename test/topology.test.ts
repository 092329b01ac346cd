// The architecture rules that imports can break: allowed imports between packages, and registered subjects.
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { describe, test } from "node:test";
import {
  channelEntries,
  operations,
  registry,
  slashCommands,
  type Contract,
  type OperationDefinition,
} from "@parley/contracts";

const root = resolve(import.meta.dirname, "..");

interface SourceFile {
  /** Relative to the repository. */
  path: string;
  text: string;
  /** Imported modules, types included. */
  imports: string[];
}

const files: SourceFile[] = globSync(
  ["packages/*/src/**/*.{ts,tsx}", "services/*/src/**/*.ts", "infra/local/src/**/*.ts"],
  {
    cwd: root,
  },
).map((path) => {
  const text = readFileSync(join(root, path), "utf8");
  const imports = [
    ...text.matchAll(
      /(?:^|\n)\s*(?:import|export)\b[^;"']*?from\s+["']([^"']+)["']|import\(\s*["']([^"']+)["']\s*\)|(?:^|\n)\s*import\s+["']([^"']+)["']/g,
    ),
  ];
  return { path, text, imports: imports.flatMap((match) => match[1] ?? match[2] ?? match[3] ?? []) };
});

/** `services/store`, `packages/bus`, `infra/local`. */
const homeOf = (path: string) => path.split("/").slice(0, 2).join("/");
const packageName = (specifier: string) =>
  specifier
    .split("/")
    .slice(0, specifier.startsWith("@") ? 2 : 1)
    .join("/");

const services = ["store", "agent-core", "tool-runner", "channel-gateway"].map((name) => `services/${name}`);

/** Third-party libraries that only these packages may import. */
const owners: Record<string, string[]> = {
  nats: ["packages/bus"],
  pg: ["services/store", "packages/testing"],
  "drizzle-orm": ["services/store"],
  croner: ["services/store"],
  bullmq: ["services/agent-core"],
  ioredis: ["services/agent-core"],
  "@anthropic-ai/sdk": ["services/agent-core"],
  "eventsource-parser": ["services/agent-core", "services/channel-gateway"],
  fastify: ["services/channel-gateway"],
  ws: ["services/channel-gateway", "packages/cli"],
  commander: ["packages/cli"],
  pino: ["packages/chassis"],
  "prom-client": ["packages/chassis"],
  linkedom: ["services/tool-runner"],
  "@mozilla/readability": ["services/tool-runner"],
  turndown: ["services/tool-runner"],
  "ipaddr.js": ["services/tool-runner"],
  "@modelcontextprotocol/client": ["services/tool-runner", "packages/cli"],
  "@vscode/ripgrep": ["services/tool-runner"],
  "@modelcontextprotocol/server": ["services/channel-gateway"],
  jose: ["services/channel-gateway"],
  preact: ["packages/console"],
  marked: ["packages/console"],
  dompurify: ["packages/console"],
  "highlight.js": ["packages/cli", "packages/console"],
  "@earendil-works/pi-tui": ["packages/cli"],
  uplot: ["packages/console"],
  "@opentelemetry/api": ["packages/bus", "packages/chassis"],
  "@opentelemetry/sdk-trace": ["packages/chassis"],
};

/** Channels whose name is an ordinary word of the code: how code would name the channel. */
const namesAsChannel: Record<string, RegExp> = {
  signal: /\bsignalChannel\b|\bSignalAccount\b|\bchannels\.signal\b|channel: "signal"|["'`]signal:[^\s"'`]/,
};

const serviceImports = ["@parley/bus", "@parley/chassis", "@parley/contracts", "@parley/kit"];

/** The packages that each package may import. */
const mayImport: Record<string, string[]> = {
  "packages/contracts": [],
  "packages/kit": [],
  "packages/bus": ["@parley/contracts", "@parley/kit"],
  "packages/chassis": ["@parley/bus", "@parley/contracts", "@parley/kit"],
  "packages/projections": ["@parley/contracts", "@parley/kit"],
  // Types only: the console uses the public API and contains no code of the cluster.
  "packages/console": ["@parley/contracts"],
  "packages/cli": ["@parley/chassis", "@parley/contracts", "@parley/kit", "@parley/local", "@parley/projections"],
  "infra/local": ["@parley/chassis", "@parley/contracts", "@parley/kit"],
  ...Object.fromEntries(services.map((service) => [service, serviceImports])),
  "services/channel-gateway": [...serviceImports, "@parley/projections"],
};

describe("imports", () => {
  test("finds files to check", () => assert.ok(files.length > 80));

  test("follow the allowed dependencies, and no service imports another", () => {
    const broken = files.flatMap(({ path, imports }) => {
      const allowed = mayImport[homeOf(path)];
      if (allowed === undefined) return [];
      return imports
        .map(packageName)
        .filter((name) => name.startsWith("@parley/") && !allowed.includes(name))
        .map((name) => `${path} imports ${name}`);
    });
    assert.deepEqual(broken, []);
  });

  test("stay inside the package when they are relative", () => {
    const broken = files.flatMap(({ path, imports }) =>
      imports
        .filter((specifier) => specifier.startsWith("."))
        .filter(
          (specifier) =>
            !relative(join(root, homeOf(path)), resolve(root, dirname(path), specifier)).match(/^(?!\.\.)/),
        )
        .map((specifier) => `${path} imports ${specifier}`),
    );
    assert.deepEqual(broken, []);
  });

  test("of a library occur only in its own packages", () => {
    const broken = files.flatMap(({ path, imports }) =>
      imports
        .map(packageName)
        .filter(
          (name) =>
            Object.hasOwn(owners, name) &&
            !(owners[name] ?? []).includes(homeOf(path)) &&
            homeOf(path) !== "packages/testing",
        )
        .map((name) => `${path} imports ${name}`),
    );
    assert.deepEqual(broken, []);
  });

  test("of the console from other packages are types", () => {
    const broken = files
      .filter(({ path }) => homeOf(path) === "packages/console")
      .filter(({ text }) => /^import (?!type )[^;]*"@parley\//m.test(text))
      .map(({ path }) => path);
    assert.deepEqual(broken, []);
  });

  test("of the contracts are only zod", () => {
    const names = new Set(
      files
        .filter(({ path }) => homeOf(path) === "packages/contracts")
        .flatMap(({ imports }) => imports.filter((each) => !each.startsWith("."))),
    );
    names.delete("node:fs");
    assert.deepEqual([...names], ["zod"]);
  });

  test("name a channel only in its entry, its adapter and its test platform", () => {
    const broken = channelEntries.flatMap(({ name }) => {
      const own = [
        "packages/contracts/src/channels/",
        `services/channel-gateway/src/channels/${name}/`,
        "packages/testing/src/",
        // `email` is also a format of JSON Schema.
        ...(name === "email" ? ["services/tool-runner/src/mcp/interaction/answers.ts"] : []),
        "infra/local/src/test-peers.ts",
      ];
      return files
        .filter(({ path }) => path.includes("/src/") && !own.some((folder) => path.startsWith(folder)))
        .filter(({ text }) => (namesAsChannel[name] ?? new RegExp(`\\b${name}\\b`, "i")).test(text))
        .map(({ path }) => `${path} names ${name}`);
    });
    assert.deepEqual(broken, []);
  });

  test("have a folder with the name of each channel", () => {
    for (const { name } of channelEntries) {
      const index = `services/channel-gateway/src/channels/${name}/index.ts`;
      assert.ok(
        files.some(({ path }) => path === index),
        `${index} is missing`,
      );
    }
  });
});

describe("store", () => {
  /** Files that do not use the LeaderStore yet; the list may only become shorter. */
  const direct = [
    "sampling/service.ts",
    "voice/poll-utterances.ts",
    "voice/session-manager.ts",
    "voice/spoken-replies.ts",
  ].map((file) => `services/agent-core/src/${file}`);

  test("receives requests of agent-core only from the LeaderStore", () => {
    const found = files
      .filter(({ path }) => path.startsWith("services/agent-core/src/") && !path.includes("/store-client/"))
      .filter(({ text }) => /\bbus\s*\.request\(\s*store\./.test(text))
      .map(({ path }) => path);
    assert.deepEqual(found.sort(), direct);
  });
});

describe("state of a turn", () => {
  /** Files of the folder that assign to a field of this variable. */
  function writing(variable: string): string[] {
    const folder = "services/agent-core/src/turn/";
    const assigns = new RegExp(String.raw`\b${variable}\.\w+ (?:[-+*/|&]|\?\?|\|\||&&)?= `);
    return files
      .filter(({ path, text }) => path.startsWith(folder) && assigns.test(text))
      .map(({ path }) => path.slice(folder.length))
      .sort();
  }

  test("is written only by the loop and the files that commit", () => {
    assert.deepEqual(writing("turn"), ["commit.ts", "loop.ts"]);
  });

  test("leaves measurements of the view to the files that measure", () => {
    assert.deepEqual(writing("view"), ["compactor.ts", "model-step.ts"]);
  });
});

describe("environment", () => {
  test("is read only in config.ts of a service", () => {
    const broken = files
      .filter(
        ({ path }) =>
          services.includes(homeOf(path)) && /process\.env/.test(files.find((each) => each.path === path)?.text ?? ""),
      )
      .map(({ path }) => path)
      .filter((path) => !path.endsWith("/config.ts") && path !== "services/store/src/migrate.ts");
    assert.deepEqual(broken, []);
  });
});

describe("subjects", () => {
  test("come only from the registry: the bus takes contracts, which only contracts create", async () => {
    const exported = await import("@parley/contracts");
    for (const name of ["request", "event", "hint"]) assert.ok(!Object.hasOwn(exported, name), `${name} is exported`);
    const made = [exported.store, exported].flatMap((each): unknown[] => Object.values(each)).filter(isContract);
    const unlisted = made.filter((contract) => !registry.includes(contract)).map((contract) => contract.subject);
    assert.deepEqual(unlisted, []);
    const bypassing = files
      .filter(({ path }) => !path.startsWith("packages/bus/"))
      .filter(({ text }) => /kind: "(request|event|hint)"/.test(text) && /\bsubject:/.test(text))
      .map(({ path }) => path);
    assert.deepEqual(bypassing, ["packages/contracts/src/contract.ts"]);
  });

  test("are served or published, and used", () => {
    const all = files
      .filter(({ path }) => !path.startsWith("packages/"))
      .map(({ text }) => text)
      .join("\n");
    const contracts = files
      .filter(({ path }) => path.startsWith("packages/contracts/src/"))
      .map(({ text }) => text)
      .join("\n");
    const named = [...contracts.matchAll(/export const (\w+) = (?:request|event|hint)\(/g)].map(
      (match) => match[1] ?? "",
    );
    assert.ok(named.length > 30);
    assert.deepEqual(
      named.filter((name) => !new RegExp(`\\b${name}\\b`).test(all)),
      [],
    );
  });
});

describe("operations", () => {
  const gateway = files.filter(({ path }) => path.startsWith("services/channel-gateway/src/"));
  const withText = (pattern: RegExp) =>
    gateway
      .filter(({ text }) => pattern.test(text))
      .map(({ path }) => path.slice("services/channel-gateway/src/".length))
      .toSorted();

  test("are each implemented once", () => {
    const implemented = gateway.flatMap(({ text }) =>
      [...text.matchAll(/\bimplement\(\s*operations\.(\w+)/g)].map(([, name = ""]) => name),
    );
    assert.deepEqual(implemented.toSorted(), Object.keys(operations).toSorted());
  });

  test("have unique names, routes, control requests and tools, and forms of listed commands", () => {
    const all = Object.values<OperationDefinition>(operations);
    for (const names of [
      all.map(({ name }) => name),
      all.flatMap(({ http }) => (http === undefined ? [] : `${http.method} ${http.path}`)),
      all.flatMap(({ ws = [] }) => ws.map(({ subtype }) => subtype)),
      all.flatMap(({ mcp }) => mcp?.name ?? []),
    ]) {
      assert.equal(new Set(names).size, names.length, names.join(", "));
    }
    const commands = new Set(all.flatMap(({ slash = [] }) => slash.map(({ form }) => form.split(" ")[0] ?? "")));
    for (const { name } of slashCommands) assert.ok(commands.has(name), name);
  });

  test("are the only source of routes and tools, except for the routes written by hand", () => {
    assert.deepEqual(withText(/\.registerTool\(/), ["http/mcp/tools.ts"]);
    assert.deepEqual(withText(/\bendpoints\.(add|document)\(|\b(app|scope)\.(get|post|all|route)\b[<(]/), [
      // Platforms call the adapters.
      "channels/webhook-route.ts",
      "channels/whatsapp/webhook.ts",
      "http/attachments.ts",
      "http/console/documentation.ts",
      "http/console/files.ts",
      "http/console/sign-in.ts",
      // Registers what the other files add.
      "http/endpoint.ts",
      "http/events.ts",
      "http/mcp/consent.ts",
      "http/mcp/routes.ts",
      "http/messages.ts",
      "http/openai.ts",
      "http/operations.ts",
      "http/platform-routes.ts",
      "http/responses.ts",
      "http/server.ts",
      "http/simple-chat.ts",
      "http/webhooks.ts",
      "http/ws/routes.ts",
    ]);
  });
});

function isContract(value: unknown): value is Contract {
  return typeof value === "object" && value !== null && "subject" in value && "kind" in value;
}
