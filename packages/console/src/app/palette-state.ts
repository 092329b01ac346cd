// Whether the palette is open; apart from it, so that the keys do not import the views twice.
import { signal } from "@preact/signals";

export const paletteOpen = signal(false);
