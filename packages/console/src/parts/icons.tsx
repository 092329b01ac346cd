// The icons, as strokes in the colour of the text.
import type { JSX } from "preact";

const paths = {
  chat: "M4 5h16v11H9l-5 4z",
  sessions: "M4 6h16M4 12h16M4 18h10",
  approvals: "M12 3l8 3v6c0 4.500-3.200 7.800-8 9-4.800-1.200-8-4.500-8-9V6zM8.500 12l2.500 2.500 4.500-5",
  cluster: "M4 4h16v6H4zM4 14h16v6H4zM8 7h.01M8 17h.01",
  usage: "M4 20V10M10 20V4M16 20v-7M21 20H3",
  schedules: "M12 7v5l3 2M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18z",
  documents: "M6 3h8l4 4v14H6zM14 3v4h4M9 12h6M9 16h6",
  tools: "M14.500 6a4 4 0 0 0-5.300 5.300L4 16.500 7.500 20l5.200-5.200A4 4 0 0 0 18 9.500l-2.700 2.700-3-.5-.5-3z",
  people:
    "M9 11a3.500 3.500 0 1 0 0-7 3.500 3.500 0 0 0 0 7zM3 20c0-3.300 2.700-6 6-6s6 2.700 6 6M16 4.500a3.500 3.500 0 0 1 0 6M17.500 14.500c2.100.9 3.500 3 3.500 5.500",
  channels: "M5 12a7 7 0 0 1 14 0M8.500 12a3.500 3.500 0 0 1 7 0M12 12v8",
  settings: "M4 7h10M18 7h2M4 17h2M10 17h10M14 5v4M6 15v4",
  plus: "M12 5v14M5 12h14",
  send: "M5 12h13M12 5l7 7-7 7",
  stop: "M7 7h10v10H7z",
  attach: "M8 12.500l6-6a3 3 0 0 1 4.300 4.300l-8 8a5 5 0 0 1-7-7l7.700-7.700",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  check: "M5 12.500l4.500 4.500L19 7.500",
  cross: "M6 6l12 12M18 6L6 18",
  chevron: "M9 6l6 6-6 6",
  search: "M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14zM20 20l-4-4",
  menu: "M4 7h16M4 12h16M4 17h16",
  edit: "M4 20h4L19 9l-4-4L4 16z",
  fork: "M7 4v6c0 3 10 3 10 0V4M12 12.500V20",
  archive: "M4 5h16v4H4zM6 9v10h12V9M10 13h4",
  rewind: "M4 5v5h5M4.500 10A8 8 0 1 1 4 14",
  refresh: "M20 5v5h-5M19.500 10A8 8 0 1 0 20 14",
  out: "M10 4H5v16h5M14 8l4 4-4 4M18 12H9",
  clock: "M12 7v5l3 2M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18z",
  file: "M6 3h8l4 4v14H6zM14 3v4h4",
} as const;

export type IconName = keyof typeof paths;

export function Icon({ name }: { name: IconName }): JSX.Element {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
      <path d={paths[name]} />
    </svg>
  );
}
