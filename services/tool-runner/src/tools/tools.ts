// The tools this service has.
import type { ProcessDesk } from "../process/desk.ts";
import type { Tool } from "../tool.ts";
import { editTool } from "./edit.ts";
import { execTool, type ExecOptions } from "./exec.ts";
import { globTool } from "./glob.ts";
import { grepTool } from "./grep.ts";
import { lsTool } from "./ls.ts";
import { processTool } from "./process.ts";
import { readTool } from "./read.ts";
import { writeTool } from "./write.ts";

export interface BuiltInOptions {
  exec: ExecOptions;
  desk: ProcessDesk;
}

export function builtInTools({ exec, desk }: BuiltInOptions): Tool[] {
  const files = [editTool, globTool, grepTool, lsTool, readTool, writeTool];
  return exec.executor.isolation.kind === "off" ? files : [...files, execTool(exec), processTool(desk)];
}
