// Attachments of a message: pictures are shown, other files are links.
import type { Attachment } from "@parley/contracts";
import type { JSX } from "preact";
import { bytes } from "../parts/format.ts";
import { Icon } from "../parts/icons.tsx";
import { visible } from "./markdown.ts";

/** Types that a browser shows as a picture and that run nothing. */
const pictures = new Set(["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif"]);

export function Files({ files }: { files: readonly Attachment[] }): JSX.Element | null {
  if (files.length === 0) return null;
  return (
    <ul class="files">
      {files.map(({ sha256, mediaType, name, bytes: size }) => {
        const address = `/api/attachments/${sha256}?name=${encodeURIComponent(name)}`;
        return (
          <li key={sha256}>
            <a href={address} download={name} class={pictures.has(mediaType) ? "picture" : "file"}>
              {pictures.has(mediaType) ? (
                <img src={address} alt={visible(name)} loading="lazy" />
              ) : (
                <>
                  <Icon name="file" /> <bdi>{visible(name)}</bdi> <span class="muted">{bytes(size)}</span>
                </>
              )}
            </a>
          </li>
        );
      })}
    </ul>
  );
}
