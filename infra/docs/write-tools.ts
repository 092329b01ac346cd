// Writes docs/tools.md.
import { writeFileSync } from "node:fs";
import { toolsDocument } from "./tools-document.ts";
import { toolParts } from "./tools.ts";

writeFileSync(new URL("../../docs/tools.md", import.meta.url), toolsDocument(toolParts()));
