// Distinguishes text from binary content by a file's first bytes. Pure.

const kinds: readonly { name: string; magic: readonly number[]; at?: number; viewable?: "picture" | "pdf" }[] = [
  { name: "a PNG image", magic: [0x89, 0x50, 0x4e, 0x47], viewable: "picture" },
  { name: "a JPEG image", magic: [0xff, 0xd8, 0xff], viewable: "picture" },
  { name: "a GIF image", magic: [0x47, 0x49, 0x46, 0x38], viewable: "picture" },
  { name: "a WebP image", magic: [0x57, 0x45, 0x42, 0x50], at: 8, viewable: "picture" },
  { name: "a PDF document", magic: [0x25, 0x50, 0x44, 0x46], viewable: "pdf" },
  { name: "a ZIP archive (or an Office document)", magic: [0x50, 0x4b, 0x03, 0x04] },
  { name: "a gzip archive", magic: [0x1f, 0x8b] },
  { name: "an xz archive", magic: [0xfd, 0x37, 0x7a, 0x58, 0x5a] },
  { name: "a Zstandard archive", magic: [0x28, 0xb5, 0x2f, 0xfd] },
  { name: "an ELF program", magic: [0x7f, 0x45, 0x4c, 0x46] },
  { name: "an SQLite database", magic: [0x53, 0x51, 0x4c, 0x69, 0x74, 0x65] },
  { name: "UTF-16 text", magic: [0xff, 0xfe] },
  { name: "UTF-16 text", magic: [0xfe, 0xff] },
];

/** The kind of binary content, for messages; undefined for text. `head` contains the first bytes of the file. */
export function binaryKind(head: Uint8Array): string | undefined {
  const kind = kindOf(head);
  if (kind !== undefined) return kind.name;
  return head.includes(0) ? "binary data" : undefined;
}

/** The kind of content that models can be shown directly; undefined for everything else. */
export function viewableKind(head: Uint8Array): "picture" | "pdf" | undefined {
  return kindOf(head)?.viewable;
}

function kindOf(head: Uint8Array) {
  return kinds.find(({ magic, at = 0 }) => magic.every((byte, index) => head[at + index] === byte));
}

/** Undefined when writing the text back would change bytes outside the edit: binary content or invalid UTF-8. */
export function decodeText(bytes: Buffer): string | undefined {
  if (binaryKind(bytes.subarray(0, 8_192)) !== undefined) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
