// The build of the console: one page, one style sheet, and chunks for what only some views need.
import { defineConfig } from "vite";

const config = defineConfig({
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
