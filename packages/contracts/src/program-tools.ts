// Tools that a program defines for its session and runs itself.
import { z } from "zod";

/** Maximum tools of one session, and maximum size of their definitions as JSON, in characters. */
const maxTools = 64;
const maxCharacters = 64_000;

const ProgramToolSchema = z.object({
  name: z.string().regex(/^mcp__[A-Za-z0-9_-]{1,59}$/),
  /** The program's own description. */
  description: z.string().max(4_000),
  /** JSON Schema of the arguments; its root is an object. */
  inputSchema: z.record(z.string(), z.unknown()),
  /** Hints of the program about its tool, as of MCP. Omitted: false. */
  readOnly: z.boolean().optional(),
  destructive: z.boolean().optional(),
  /** Its results contain what others wrote, such as web pages or mail. */
  openWorld: z.boolean().optional(),
});
export type ProgramTool = z.infer<typeof ProgramToolSchema>;

/** The tools of a session, with different names. */
export const ProgramToolsSchema = z
  .array(ProgramToolSchema)
  .max(maxTools)
  .refine((tools) => new Set(tools.map(({ name }) => name)).size === tools.length, "two tools have the same name")
  .refine(
    (tools) => JSON.stringify(tools).length <= maxCharacters,
    `the definitions have more than ${maxCharacters} characters`,
  );
