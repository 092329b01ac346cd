// What is used of a package that has no types: GitHub's additions to Markdown (tables, strikethrough, task lists).
declare module "@joplin/turndown-plugin-gfm" {
  import type Turndown from "turndown";
  export const gfm: Turndown.Plugin;
}
