// The build of the console: one page, one style sheet, chunks for what only some views need, and the pages of the documentation.
import { resolve } from "node:path";
import { defineConfig } from "vite";
import { documentation } from "./build/docs-pages.ts";

const config = defineConfig({
  plugins: [documentation(resolve(import.meta.dirname, "../.."))],
  build: {
    target: "es2023",
    // The page must not contain data: URLs, which its Content Security Policy forbids.
    assetsInlineLimit: 0,
    // The polyfill would be an inline script.
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
});

// oxlint-disable-next-line import/no-default-export -- Vite reads the default export
export default config;
