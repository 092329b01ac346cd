// Colours of the terminal chat.

import type { EditorTheme, MarkdownTheme, SelectListTheme } from "@earendil-works/pi-tui";

import type { Format, Paint } from "../io/io.ts";
import { highlight } from "./highlight.ts";

export interface Theme {
  readonly paint: Paint;
  readonly markdown: MarkdownTheme;
  readonly editor: EditorTheme;
  readonly select: SelectListTheme;
}

export function themeOf(paint: Paint): Theme {
  const styled = (format: Format) => (text: string) => paint(format, text);
  const select: SelectListTheme = {
    selectedPrefix: styled("cyan"),
    selectedText: styled("cyan"),
    description: styled("dim"),
    scrollInfo: styled("dim"),
    noMatch: styled("dim"),
  };
  return {
    paint,
    select,
    editor: { borderColor: styled("dim"), selectList: select },
    markdown: {
      heading: styled(["bold", "cyan"]),
      link: styled("blue"),
      linkUrl: styled("dim"),
      code: styled("yellow"),
      codeBlock: (text) => text,
      // The text is the fence with the language: a line with the language is easier to read.
      codeBlockBorder: (fence) => paint("dim", `── ${fence.replace(/^`+/, "")}`.trimEnd()),
      quote: styled("italic"),
      quoteBorder: styled("dim"),
      hr: styled("dim"),
      listBullet: styled("cyan"),
      bold: styled("bold"),
      italic: styled("italic"),
      strikethrough: styled("strikethrough"),
      underline: styled("underline"),
      highlightCode: (code, language) => highlight(code, language, paint),
    },
  };
}
