// Whether a call's arguments fit what its tool says it takes, asked before a person is: a call that cannot run is not worth a question.
import type { ToolDescriptor } from "@parley/contracts";
import type { ValidateFunction } from "ajv/dist/2020.js";

/** By the schema itself: the catalogue keeps the same object while a tool stays as it is. Null: a schema that cannot be read. */
const known = new WeakMap<ToolDescriptor["inputSchema"], ValidateFunction | null>();

/**
 * What is wrong with the arguments (JSON text), in words for the model; undefined where they fit, and where the schema of somebody
 * else's tool cannot be read.
 */
export async function wrongArguments(
  { name, inputSchema }: Pick<ToolDescriptor, "name" | "inputSchema">,
  input: string,
): Promise<string | undefined> {
  const kept = known.get(inputSchema);
  const fits = kept === undefined ? await compile(inputSchema) : kept;
  known.set(inputSchema, fits);
  if (fits === null) return undefined;
  const given = parse(input);
  if (given === undefined) return `The arguments of ${name} are no JSON object. Nothing was run.`;
  if (fits(given)) return undefined;
  const problems = (fits.errors ?? []).map(({ instancePath, message, params }) => {
    const at = instancePath === "" ? "" : `${instancePath.slice(1).replaceAll("/", ".")} `;
    const unknown: unknown = params["additionalProperty"];
    return typeof unknown === "string" ? `${at}has no "${unknown}"` : `${at}${message ?? "does not fit"}`;
  });
  const { properties } = inputSchema;
  const names = Object.keys(typeof properties === "object" && properties !== null ? properties : {}).join(", ");
  return `The arguments of ${name} are wrong: ${problems.join("; ")}. Its arguments are: ${names}. Nothing was run.`;
}

async function compile(schema: ToolDescriptor["inputSchema"]): Promise<ValidateFunction | null> {
  // Read when first needed: most conversations ask nobody.
  const { Ajv2020 } = await import("ajv/dist/2020.js");
  // Formats are left to whoever runs the tool; the names of foreign dialects are no errors.
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
  try {
    const given: unknown = input.trim() === "" ? {} : JSON.parse(input);
    return typeof given === "object" && given !== null && !Array.isArray(given) ? given : undefined;
  } catch {
    return undefined;
  }
}
