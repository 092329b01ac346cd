// Writes the tables of docs/permissions.md; the rest of the page is written by hand.
import { readFileSync, writeFileSync } from "node:fs";
import { withTables } from "./permissions-table.ts";

const page = new URL("../../docs/permissions.md", import.meta.url);
writeFileSync(page, await withTables(readFileSync(page, "utf8")));
