// Types for an untyped package: GitHub Flavored Markdown for Turndown (tables, strikethrough, task lists).
declare module "@joplin/turndown-plugin-gfm" {
  import type Turndown from "turndown";
  export const gfm: Turndown.Plugin;
}
