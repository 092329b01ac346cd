// The tools this service has.
import type { Tool } from "../tool.ts";
import { editTool } from "./edit.ts";
import { execTool, type ExecOptions } from "./exec.ts";
import { globTool } from "./glob.ts";
import { grepTool } from "./grep.ts";
import { lsTool } from "./ls.ts";
import { readTool } from "./read.ts";
import { writeTool } from "./write.ts";

export function builtInTools(exec: ExecOptions): Tool[] {
  const files = [editTool, globTool, grepTool, lsTool, readTool, writeTool];
  return exec.executor.isolation.kind === "off" ? files : [...files, execTool(exec)];
}
