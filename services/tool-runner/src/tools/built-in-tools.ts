// The built-in tools of this service.
import type { BackgroundProcessApi } from "../processes/api.ts";
import type { SearchProvider } from "../web/search.ts";
import type { Tool } from "../tool/tool.ts";
import { applyPatchTool } from "./apply-patch.ts";
import { attachTool, saveAttachmentTool } from "./attach.ts";
import { editTool } from "./edit.ts";
import { execTool, type ExecOptions } from "./exec.ts";
import { globTool } from "./glob.ts";
import { grepTool } from "./grep.ts";
import { lsTool } from "./ls.ts";
import { notebookEditTool } from "./notebook-edit.ts";
import { processTool } from "./process.ts";
import { readTool } from "./read.ts";
import type { WebFetchOptions } from "../web/settings.ts";
import { webFetchTool } from "./web-fetch.ts";
import { webSearchTool } from "./web-search.ts";
import { writeTool } from "./write.ts";

export interface BuiltInOptions {
  exec: ExecOptions;
  processes: BackgroundProcessApi;
  web: WebFetchOptions;
  /** Null when no provider is configured. */
  search: SearchProvider | null;
}

export function builtInTools({ exec, processes, web, search }: BuiltInOptions): Tool[] {
  const files = [
    applyPatchTool,
    attachTool,
    editTool,
    globTool,
    grepTool,
    lsTool,
    notebookEditTool,
    readTool,
    saveAttachmentTool,
    writeTool,
  ];
  const commands = exec.executor.isolation.kind === "off" ? [] : [execTool(exec), processTool(processes)];
  const online = [webFetchTool(web), ...(search === null ? [] : [webSearchTool(search)])];
  return [...files, ...commands, ...online];
}
