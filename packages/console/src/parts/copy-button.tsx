// A button that copies text to the clipboard.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { Icon } from "./icons.tsx";
import { runAction } from "./toast.tsx";

/** How long the button confirms that it copied. */
const confirmationMs = 1_500;

/** `text` is called at each click, so that it can return the current content. */
export function CopyButton({ label = "Copy", text }: { label?: string; text: () => string }): JSX.Element {
  const copied = useSignal(false);
  const copy = async () => {
    if (!(await runAction(() => navigator.clipboard.writeText(text())))) return;
    copied.value = true;
    setTimeout(() => (copied.value = false), confirmationMs);
  };
  return (
    <button type="button" class="link-button" onClick={() => void copy()}>
      <Icon name={copied.value ? "check" : "copy"} /> {copied.value ? "Copied" : label}
    </button>
  );
}
