// Validates a call's arguments against its tool's schema before approval is requested: no person has to decide about a call that
// cannot run.
import { parseJsonObject } from "@parley/kit";
import type { ToolDescriptor } from "@parley/contracts";
import type { ValidateFunction } from "ajv/dist/2020.js";

/** Compiled schemas. The catalog keeps the same schema object while a tool is unchanged. Null: the schema is invalid. */
const known = new WeakMap<ToolDescriptor["inputSchema"], ValidateFunction | null>();

/**
 * The problems of the arguments (JSON text), as a text for the model; undefined if they are valid, and if the schema of an external
 * tool is invalid.
 */
export async function argumentErrors(
  { name, inputSchema }: Pick<ToolDescriptor, "name" | "inputSchema">,
  input: string,
): Promise<string | undefined> {
  const kept = known.get(inputSchema);
  const fits = kept === undefined ? await compile(inputSchema) : kept;
  known.set(inputSchema, fits);
  if (fits === null) return undefined;
  const given = parse(input);
  if (given === undefined) return `Not run: the arguments of ${name} are not a JSON object.`;
  if (fits(given)) return undefined;
  const problems = (fits.errors ?? []).map(({ instancePath, message, params }) => {
    const at = instancePath === "" ? "" : `${instancePath.slice(1).replaceAll("/", ".")} `;
    const unknown: unknown = params["additionalProperty"];
    return typeof unknown === "string" ? `${at}has no property "${unknown}"` : `${at}${message ?? "is invalid"}`;
  });
  const { properties } = inputSchema;
  const names = Object.keys(typeof properties === "object" && properties !== null ? properties : {}).join(", ");
  return `Not run: invalid arguments for ${name}: ${problems.join("; ")}. Valid arguments: ${names}.`;
}

async function compile(schema: ToolDescriptor["inputSchema"]): Promise<ValidateFunction | null> {
  // Loaded on first use: most conversations need no approval.
  const { Ajv2020 } = await import("ajv/dist/2020.js");
  // The tool itself checks formats; unknown keywords of other schema dialects are not errors.
  const ajv = new Ajv2020({
    strict: false,
    validateFormats: false,
    allErrors: true,
    addUsedSchema: false,
    logger: false,
  });
  const { $schema: _, ...plain } = schema;
  try {
    return ajv.compile(plain);
  } catch {
    return null;
  }
}

function parse(input: string): object | undefined {
  return input.trim() === "" ? {} : parseJsonObject(input);
}
