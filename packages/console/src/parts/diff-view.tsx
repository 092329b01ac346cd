// Shows the difference of two texts.
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { lineDiff } from "./diff.ts";

const signs = { same: " ", added: "+", removed: "−", skipped: "⋯" } as const;

export function DiffView({ before, after }: { before: string; after: string }): JSX.Element {
  const lines = useMemo(() => lineDiff(before, after), [before, after]);
  if (lines.length === 0) return <p class="muted">No difference.</p>;
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- a scrolling area needs the keyboard
    <pre class="diff" tabIndex={0} aria-label="Difference">
      {lines.map(({ kind, text }, index) => (
        <span key={index} class={`diff-${kind}`}>
          {signs[kind]} {text}
          {"\n"}
        </span>
      ))}
    </pre>
  );
}
