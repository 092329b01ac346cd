// docs/protocol.md, from the registry: what the document says is what the code checks.
import { z } from "zod";
import type { Contract, RequestContract } from "../contract.ts";
import * as contracts from "../index.ts";
import { wireErrorCodes } from "../errors.ts";
import { natsPermissions } from "../permissions.ts";
import { registry } from "../registry.ts";
import { roles } from "../roles.ts";
import { nameShared, type Json } from "./shared-schemas.ts";

/** The whole document. */
export function protocolDocument(): string {
  const requests = registry.filter((contract) => contract.kind === "request");
  const events = registry.filter((contract) => contract.kind !== "request");
  return [
    "# The protocol of the bus",
    "Generated from `packages/contracts` by `npm run docs`; a test fails when it is stale. Every subject begins with the namespace (`parley.` by default).",
    "Requests are answered with `{ok: true, data}` or `{ok: false, error: {code, message}}`. Payloads are JSON of at most 512 KiB, parsed once by the receiver; what does not match is refused or dropped, counted and logged with its path.",
    `Error codes: ${wireErrorCodes.map((code) => `\`${code}\``).join(", ")}.`,
    "## Requests",
    table(
      ["subject", "served by", "asked by", "meaning"],
      requests.map((contract) => [code(contract.subject), served(contract), contract.clients.join(", "), contract.doc]),
    ),
    "## Hints and events",
    "A hint only saves time: the truth is in the store. Both may be lost.",
    table(
      ["subject", "kind", "from", "to", "meaning"],
      events.map((contract) => [
        code(contract.subject),
        contract.kind,
        contract.publishers.join(", "),
        contract.consumers.join(", "),
        contract.doc,
      ]),
    ),
    "## Permissions",
    "Each role is a NATS user that may publish and subscribe this much, and reads replies only below its own `_INBOX_<role>`.",
    table(
      ["role", "publishes", "subscribes"],
      roles.map((role) => {
        const { publish, subscribe } = natsPermissions(role, "parley");
        return [role, list(publish), list(subscribe)];
      }),
    ),
    ...payloads(),
    "",
  ].join("\n\n");
}

function served(contract: RequestContract): string {
  if (contract.served === "leader") return `${contract.server} (the leader)`;
  return contract.served === "all" ? `${contract.server} (every replica)` : contract.server;
}

interface Titled {
  subject: string;
  /** What is said with it. */
  title: string;
  schema: z.ZodType;
}

/** Each subject's payloads, then the schemas that several of them share. */
function payloads(): string[] {
  const all = registry.flatMap(said);
  const { roots, shared } = nameShared(
    all.map(({ schema }) => jsonSchema(schema)),
    exportedNames(),
  );
  const parts = all.map(({ subject, title }, index) => {
    const heading = all[index - 1]?.subject === subject ? [] : [`### ${subject}`];
    return [...heading, title, fence(roots[index] ?? null)].join("\n\n");
  });
  const definitions = [...shared].toSorted(([one], [other]) => (one < other ? -1 : 1));
  return [
    "## Payloads",
    'JSON Schema. `{"$ref": "#Name"}` stands for the shared schema of that name, below. Integers lie between -(2^53 - 1) and 2^53 - 1 where nothing narrower is said.',
    ...parts,
    "## Shared schemas",
    ...definitions.map(([name, schema]) => `### ${name}\n\n${fence(schema)}`),
  ];
}

function said(contract: Contract): Titled[] {
  const { subject } = contract;
  if (contract.kind !== "request") return [{ subject, title: "says", schema: contract.payload }];
  return [
    { subject, title: "asks", schema: contract.input },
    { subject, title: "answers", schema: contract.output },
  ];
}

/** By their JSON: what the package calls the schemas that it exports. */
function exportedNames(): Map<string, string> {
  return new Map(
    [...Object.entries(contracts), ...Object.entries(contracts.store)].flatMap(([name, value]) =>
      value instanceof z.ZodType && name.endsWith("Schema")
        ? [[JSON.stringify(jsonSchema(value)), name.slice(0, -"Schema".length)] as const]
        : [],
    ),
  );
}

/** Without the bounds that every integer has, and the pattern that `uuid` stands for. */
function jsonSchema(schema: z.ZodType): Json {
  const { $schema: _, ...json } = z.toJSONSchema(schema, {
    io: "input",
    unrepresentable: "any",
    override: ({ jsonSchema: each }) => {
      if (each.minimum === Number.MIN_SAFE_INTEGER) delete each.minimum;
      if (each.maximum === Number.MAX_SAFE_INTEGER) delete each.maximum;
      if (each.format === "uuid") delete each.pattern;
    },
  });
  return JsonSchema.parse(json);
}

const JsonSchema = z.json();

function fence(schema: Json): string {
  return `\`\`\`json\n${laidOut(schema, "")}\n\`\`\``;
}

/** Lines of at most about 120 characters: what fits one stands on one. */
function laidOut(value: Json, indent: string): string {
  const line = JSON.stringify(value, null, 1).replaceAll(/\n\s*/g, " ");
  if (typeof value !== "object" || value === null || indent.length + line.length <= 120) return line;
  const inner = `${indent}  `;
  const rows = Array.isArray(value)
    ? value.map((each: Json) => `${inner}${laidOut(each, inner)}`)
    : Object.entries(value).map(([key, each]) => `${inner}${JSON.stringify(key)}: ${laidOut(each, inner)}`);
  const [open, close] = Array.isArray(value) ? ["[", "]"] : ["{", "}"];
  return `${open}\n${rows.join(",\n")}\n${indent}${close}`;
}

function table(head: string[], rows: string[][]): string {
  const line = (cells: string[]) => `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n");
}

function list(subjects: string[]): string {
  return subjects.map(code).join(" ");
}

function code(text: string): string {
  return `\`${text}\``;
}
