// docs/protocol.md, from the registry: what the document says is what the code checks.
import { z } from "zod";
import type { Contract, RequestContract } from "../contract.ts";
import { wireErrorCodes } from "../errors.ts";
import { natsPermissions } from "../permissions.ts";
import { registry } from "../registry.ts";
import { roles } from "../roles.ts";

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
    "## Payloads",
    ...registry.map(payloads),
    "",
  ].join("\n\n");
}

function served(contract: RequestContract): string {
  if (contract.served === "leader") return `${contract.server} (the leader)`;
  return contract.served === "all" ? `${contract.server} (every replica)` : contract.server;
}

function payloads(contract: Contract): string {
  const schemas =
    contract.kind === "request"
      ? [fence("asks", contract.input), fence("answers", contract.output)]
      : [fence("says", contract.payload)];
  return [`### ${contract.subject}`, ...schemas].join("\n\n");
}

function fence(title: string, schema: z.ZodType): string {
  const { $schema: _, ...json } = z.toJSONSchema(schema, { io: "input", unrepresentable: "any" });
  return `${title}\n\n\`\`\`json\n${JSON.stringify(json, null, 1)}\n\`\`\``;
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
