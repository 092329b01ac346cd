// Requirements of skills on the machine that runs the tools.
import { z } from "zod";
import { request } from "./contract.ts";

export const toolRequirements = request({
  subject: "tool.requirements",
  server: "tool-runner",
  clients: ["agent-core"],
  doc: "Check which of these programs and environment variables are missing where the tools run. Only names cross the bus, never values.",
  input: z.object({ bins: z.array(z.string()).max(1000), env: z.array(z.string()).max(1000) }),
  output: z.object({ missingBins: z.array(z.string()), missingEnv: z.array(z.string()) }),
});
