// A part of a page that is rendered when the person opens it.
import { useSignal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";

interface Props {
  label: ComponentChildren;
  children: () => ComponentChildren;
}

export function Fold({ label, children }: Props): JSX.Element {
  const opened = useSignal(false);
  return (
    <details class="fold" onToggle={(event) => (opened.value ||= event.currentTarget.open)}>
      <summary>{label}</summary>
      {opened.value && <div class="fold-body">{children()}</div>}
    </details>
  );
}
