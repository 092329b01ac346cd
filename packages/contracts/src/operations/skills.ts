// Operations on skills; their texts are documents.
import { z } from "zod";
import { controlSkills } from "../skills.ts";
import { operation } from "./operation.ts";

export const skillsList = operation({
  name: "skills.list",
  summary: "The skills in the newest documents, and why others are not loaded",
  role: "owner",
  input: z.strictObject({}),
  output: controlSkills.output,
  http: { method: "GET", path: "/api/skills", answers: { 200: "Sorted by name" } },
  slash: [{ form: "/skills" }],
});
