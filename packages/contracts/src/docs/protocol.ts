// Generates docs/protocol.md from the registry, so that the document matches what the code checks.
import { z } from "zod";
import type { Contract, RequestContract } from "../contract.ts";
import * as contracts from "../index.ts";
import { wireErrorCodes } from "../errors.ts";
import { natsPermissions } from "../permissions.ts";
import { registry } from "../registry.ts";
import { roles } from "../roles.ts";
import { nameSharedSchemas, type Json } from "./shared-schemas.ts";

/** The whole document. */
export function protocolDocument(): string {
  const requests = registry.filter((contract) => contract.kind === "request");
  const events = registry.filter((contract) => contract.kind !== "request");
  return [
    "# Bus protocol",
    "Generated from `packages/contracts` by `npm run docs`; a test fails when it is stale. Every subject begins with the namespace (`parley.` by default).",
    "The reply to a request is `{ok: true, data}` or `{ok: false, error: {code, message}}`. Payloads are JSON of at most 512 KiB, parsed once by the receiver. Payloads that do not match the schema are refused or dropped, counted, and logged with the path of the mismatch.",
    `Error codes: ${wireErrorCodes.map((code) => `\`${code}\``).join(", ")}.`,
    "## Requests",
    table(
      ["subject", "served by", "requested by", "meaning"],
      requests.map((contract) => [code(contract.subject), served(contract), contract.clients.join(", "), contract.doc]),
    ),
    "## Hints and events",
    "A hint only saves time, because the data is in the store. Hints and events may be lost.",
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
    "Each role is a NATS user that may publish and subscribe only to these subjects. It receives replies only below its own `_INBOX_<role>`.",
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
  /** Direction of the payload. */
  title: string;
  schema: z.ZodType;
}

/** Each subject's payloads, then the schemas that several of them share. */
function payloads(): string[] {
  const all = registry.flatMap(schemasOf);
  const { roots, shared } = nameSharedSchemas(
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
    'JSON Schema. `{"$ref": "#Name"}` refers to the shared schema of that name below. Integers are between -(2^53 - 1) and 2^53 - 1 unless a narrower range is given.',
    ...parts,
    "## Shared schemas",
    ...definitions.map(([name, schema]) => `### ${name}\n\n${fence(schema)}`),
  ];
}

function schemasOf(contract: Contract): Titled[] {
  const { subject } = contract;
  if (contract.kind !== "request") return [{ subject, title: "payload", schema: contract.payload }];
  return [
    { subject, title: "request", schema: contract.input },
    { subject, title: "reply", schema: contract.output },
  ];
}

/** Names of the exported schemas, by their JSON. */
function exportedNames(): Map<string, string> {
  return new Map(
    [...Object.entries(contracts), ...Object.entries(contracts.store)].flatMap(([name, value]) =>
      value instanceof z.ZodType && name.endsWith("Schema")
        ? [[JSON.stringify(jsonSchema(value)), name.slice(0, -"Schema".length)] as const]
        : [],
    ),
  );
}

/** Without the default bounds of integers and the pattern of `uuid`. */
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

/** Formats JSON in lines of at most about 120 characters; a value that fits in one line is not wrapped. */
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
