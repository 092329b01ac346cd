// Copies a text to the clipboard.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { Icon } from "./icons.tsx";
import { act } from "./toast.tsx";

const copiedMs = 1_500;

export function CopyButton({ label = "Copy", text }: { label?: string; text: () => string }): JSX.Element {
  const copied = useSignal(false);
  const copy = async () => {
    if (!(await act(() => navigator.clipboard.writeText(text())))) return;
    copied.value = true;
    setTimeout(() => (copied.value = false), copiedMs);
  };
  return (
    <button type="button" class="link-button" onClick={() => void copy()}>
      <Icon name={copied.value ? "check" : "copy"} /> {copied.value ? "Copied" : label}
    </button>
  );
}
