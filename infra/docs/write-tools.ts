// Writes docs/tools.md and docs/commands.md.
import { writeFileSync } from "node:fs";
import { commandsDocument } from "../../services/channel-gateway/src/docs/commands-document.ts";
import { toolsDocument } from "./tools-document.ts";
import { toolParts } from "./tools.ts";

writeFileSync(new URL("../../docs/tools.md", import.meta.url), toolsDocument(toolParts()));
writeFileSync(new URL("../../docs/commands.md", import.meta.url), commandsDocument());
